// The calls of `dicl` in torch's flight recorder, whose dumps torch.distributed.flight_recorder reads.
//
// From torch 2.15 on torch records the calls of every backend itself; then only the dumps are made here.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <chrono>
#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "export.h"

namespace dipu::distributed {

struct Progress;

// One call in the record; copies are of the same call.
class RecordedCall {
public:
    RecordedCall() = default;
    RecordedCall(Progress* progress, int64_t number, std::size_t id) : progress_(progress), number_(number), id_(id) {}
    void complete() const;  // what failed or is not over stays open

private:
    Progress* progress_ = nullptr;  // null: not in the record
    int64_t number_ = 0;
    std::size_t id_ = 0;
};

// The part of one process group.
class GroupRecord {
public:
    // `ranks` are its ranks' numbers among all processes.
    explicit GroupRecord(std::vector<uint64_t> ranks);

    struct Entry {
        std::string name;  // e.g. "all_reduce", as torch's tool knows it
        std::vector<at::Tensor> inputs;
        std::vector<at::Tensor> outputs;
        uint64_t collectives;  // the group's so far, with this one
        uint64_t messages;     // and its messages
        bool is_message;
        std::chrono::milliseconds timeout;
    };
    RecordedCall add(const c10d::Backend& group, const Entry& entry);
    const std::vector<uint64_t>& ranks() const { return ranks_; }

private:
    std::vector<uint64_t> ranks_;
    std::size_t id_;
    uint64_t calls_ = 0;
};

// False with TORCH_FR_BUFFER_SIZE=0: then nothing is recorded.
bool records_calls();

// The record of this process as torch's tool reads it from a file whose name ends with the rank.
DIPU_API std::string flight_record(bool stacks, bool only_active);

// Writes it to where torch's variables say, in a thread that asks Python for the stacks; the future is of its end.
std::shared_future<void> write_flight_record(int rank);

}  // namespace dipu::distributed
