// One run of a program that one launch does again, and the memory that it needs for that.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <diopi/device.h>

#include <atomic>
#include <cstdint>
#include <forward_list>
#include <memory>
#include <vector>

#include "device/captured_draws.h"
#include "memory/private_pool.h"

namespace dipu::compiled {

// An argument as a run has it.
struct Place {
    const at::Tensor* tensor;
    char* address;
    bool lent;  // memory that another recording gave

    // From its first element to its last.
    std::size_t bytes() const;
};

// What tells runs apart.
struct RunPlaces {
    const std::vector<Place>& arguments;
    const std::vector<int64_t>& numbers;
    diopiStreamHandle_t stream;
};

// What all recordings for one stream share, as they run one behind the other: temporaries, and an arena as large as the largest
// asked for.
class SharedMemory {
public:
    static std::shared_ptr<SharedMemory> of(c10::DeviceIndex device, diopiStreamHandle_t stream);

    std::shared_ptr<const c10::DataPtr> arena(std::size_t bytes);
    int pool() const { return pool_.slot(); }

private:
    PrivatePool pool_;
    std::shared_ptr<const c10::DataPtr> arena_;
    std::size_t arena_bytes_ = 0;
};

// Memory for results, by root; who holds a result holds all of it.
struct ResultMemory {
    struct Block {
        std::size_t root;
        c10::DataPtr memory;
        std::size_t bytes;
    };
    std::vector<Block> blocks;
};

struct Recording {
    // An argument that lies elsewhere in each run: the run copies it to where the recording reads it.
    struct Copy {
        std::size_t argument;
        c10::DataPtr buffer;
    };

    Recording(c10::DeviceIndex device, const RunPlaces& run, std::vector<bool> copied);
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    bool serves(const RunPlaces& run) const;
    // Whether nobody holds a result of it, which another launch would overwrite.
    bool is_free() const;
    // Where it finds an argument.
    char* place(std::size_t argument) const { return places_[argument]; }

    // Does the run on the current stream.
    void launch(const RunPlaces& run);
    // The memory of a result, for as long as the storage lives.
    c10::Storage lent_result(const ResultMemory::Block& block) const;

    std::shared_ptr<ResultMemory> results = std::make_shared<ResultMemory>();
    std::shared_ptr<SharedMemory> shared;
    std::vector<c10::DataPtr> own;                // of the arena's roots, where they are apart
    std::shared_ptr<const c10::DataPtr> arena;
    std::forward_list<at::Tensor> kept;           // that functions asked for on the host
    CapturedDraws draws;
    diopiGraphHandle_t graph = nullptr;

private:
    c10::DeviceIndex device_;
    std::vector<char*> places_;
    std::vector<bool> copied_;
    std::vector<Copy> copies_;
    std::vector<int64_t> numbers_;
    diopiStreamHandle_t stream_;
};

}  // namespace dipu::compiled
