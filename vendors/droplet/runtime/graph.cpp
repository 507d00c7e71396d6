// Recording work and doing it again.
#include "graph.h"

#include <cstring>

#include "stream.h"

void tangGraph_st::append(tangKernel_t kernel, const void* args, size_t bytes) {
    auto copy = std::make_unique<Block[]>((bytes + sizeof(Block) - 1) / sizeof(Block));
    std::memcpy(copy.get(), args, bytes);
    nodes_.push_back({kernel, bytes, std::move(copy)});
}

void tangGraph_st::launch(tangStream_st& stream) const {
    for (const Node& node : nodes_) stream.submit(droplet::Work::kernel, node.kernel, node.args.get(), node.bytes);
}
