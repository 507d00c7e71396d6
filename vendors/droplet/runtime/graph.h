// A graph: launches, copies and fills that a stream recorded instead of doing them, to be done again at once.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "tang_runtime.h"
#include "work_queue.h"

struct tangGraph_st {
public:
    // Keeps a copy of the arguments.
    void append(tangKernel_t kernel, const void* args, size_t bytes);
    // Puts everything on the stream, in the order of its recording.
    void launch(tangStream_st& stream) const;

private:
    struct alignas(64) Block {
        unsigned char bytes[64];
    };
    struct Node {
        tangKernel_t kernel;
        size_t bytes;
        std::unique_ptr<Block[]> args;
    };

    struct Whole;

    std::shared_ptr<std::vector<Node>> nodes_ = std::make_shared<std::vector<Node>>();
};
