// What each collective is made of.
#include "communicator.h"

#include <cstring>
#include <utility>

#include "runtime/error.h"

using droplet::Reduction;
using droplet::require;
using droplet::Round;
using droplet::Rounds;
using droplet::size_of;
using droplet::Transfer;

namespace {

// What a kernel of the chip works with.
unsigned char* bytes_of(const void* pointer) { return static_cast<unsigned char*>(tangDeviceAddress(pointer)); }

void copy(void* to, const void* from, size_t bytes) {
    if (to != from && bytes != 0) std::memmove(to, from, bytes);
}

}  // namespace

void tclComm_st::check_rank(int32_t rank) const {
    require(rank >= 0 && rank < ranks(), tangErrorInvalidValue, "the communicator has no such rank");
}

Reduction tclComm_st::reduction(int32_t op, tclDataType_t type) const {
    if (op >= tclSum && op <= tclAvg) return {static_cast<tclRedOp_t>(op), 1, false};
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = factors_.find(op);
    require(found != factors_.end(), tangErrorInvalidValue, "there is no such reduction");
    require(type >= tclFloat16, tangErrorInvalidValue, "sums of multiplied values are not of whole numbers");
    return {tclSum, found->second, true};
}

Round tclComm_st::reduced_part(const void* send, void* result, const std::vector<size_t>& bounds, tclDataType_t type,
                               const Reduction& reduction) {
    const auto mine = static_cast<size_t>(rank());
    const size_t count = bounds[mine + 1] - bounds[mine];
    const size_t bytes = count * size_of(type);
    const auto arrived = std::make_shared<std::vector<unsigned char>>(bytes * static_cast<size_t>(ranks()));
    Round round;
    std::vector<const void*> inputs;
    for (int32_t peer = 0; peer < ranks(); ++peer) {
        const auto at = static_cast<size_t>(peer);
        if (peer == rank()) {
            inputs.push_back(bytes_of(send) + bounds[mine] * size_of(type));
            continue;
        }
        inputs.push_back(arrived->data() + at * bytes);
        round.transfers.push_back(Transfer::send(peer, bytes_of(send) + bounds[at] * size_of(type),
                                                 (bounds[at + 1] - bounds[at]) * size_of(type)));
        round.transfers.push_back(Transfer::receive(peer, arrived->data() + at * bytes, bytes));
    }
    round.finish = [arrived, inputs, result, count, type, reduction] {
        droplet::reduce(inputs, result, count, type, reduction);
    };
    return round;
}

Rounds tclComm_st::all_reduce(const void* send, void* receive, size_t count, tclDataType_t type, int32_t op) {
    const auto parts = static_cast<size_t>(ranks());
    std::vector<size_t> bounds;
    for (size_t part = 0; part <= parts; ++part) bounds.push_back(count / parts * part + count % parts * part / parts);
    const auto place = [&](int32_t peer) {
        return bytes_of(receive) + bounds[static_cast<size_t>(peer)] * size_of(type);
    };
    const auto bytes = [&](int32_t peer) {
        return (bounds[static_cast<size_t>(peer) + 1] - bounds[static_cast<size_t>(peer)]) * size_of(type);
    };
    Rounds rounds;
    rounds.push_back(reduced_part(send, place(rank()), bounds, type, reduction(op, type)));
    Round back;
    for (int32_t peer = 0; peer < ranks(); ++peer) {
        if (peer == rank()) continue;
        back.transfers.push_back(Transfer::send(peer, place(rank()), bytes(rank())));
        back.transfers.push_back(Transfer::receive(peer, place(peer), bytes(peer)));
    }
    rounds.push_back(std::move(back));
    return rounds;
}

Rounds tclComm_st::reduce_scatter(const void* send, void* receive, size_t count, tclDataType_t type, int32_t op) {
    std::vector<size_t> bounds;
    for (size_t part = 0; part <= static_cast<size_t>(ranks()); ++part) bounds.push_back(count * part);
    Rounds rounds;
    rounds.push_back(reduced_part(send, bytes_of(receive), bounds, type, reduction(op, type)));
    return rounds;
}

Rounds tclComm_st::reduce(const void* send, void* receive, size_t count, tclDataType_t type, int32_t op, int32_t root) {
    check_rank(root);
    // All is one part, the root's.
    std::vector<size_t> bounds;
    for (int32_t part = 0; part <= ranks(); ++part) bounds.push_back(part > root ? count : 0);
    Rounds rounds;
    rounds.push_back(reduced_part(send, bytes_of(receive), bounds, type, reduction(op, type)));
    return rounds;
}

Rounds tclComm_st::broadcast(const void* send, void* receive, size_t bytes, int32_t root) {
    check_rank(root);
    Round round;
    if (rank() != root) {
        round.transfers.push_back(Transfer::receive(root, bytes_of(receive), bytes));
    } else {
        for (int32_t peer = 0; peer < ranks(); ++peer) {
            if (peer != root) round.transfers.push_back(Transfer::send(peer, bytes_of(send), bytes));
        }
        round.finish = [to = bytes_of(receive), from = bytes_of(send), bytes] { copy(to, from, bytes); };
    }
    Rounds rounds;
    rounds.push_back(std::move(round));
    return rounds;
}

Rounds tclComm_st::all_gather(const void* send, void* receive, size_t bytes) {
    const auto place = [&](int32_t peer) { return bytes_of(receive) + static_cast<size_t>(peer) * bytes; };
    Round round;
    for (int32_t peer = 0; peer < ranks(); ++peer) {
        if (peer == rank()) continue;
        round.transfers.push_back(Transfer::send(peer, bytes_of(send), bytes));
        round.transfers.push_back(Transfer::receive(peer, place(peer), bytes));
    }
    round.finish = [to = place(rank()), from = bytes_of(send), bytes] { copy(to, from, bytes); };
    Rounds rounds;
    rounds.push_back(std::move(round));
    return rounds;
}

Rounds tclComm_st::all_to_all(const void* send, void* receive, size_t bytes) {
    const auto part = [&](const void* of, int32_t peer) { return bytes_of(of) + static_cast<size_t>(peer) * bytes; };
    require(send != receive || bytes == 0, tangErrorInvalidValue, "an all_to_all in place is not possible");
    Round round;
    for (int32_t peer = 0; peer < ranks(); ++peer) {
        if (peer == rank()) continue;
        round.transfers.push_back(Transfer::send(peer, part(send, peer), bytes));
        round.transfers.push_back(Transfer::receive(peer, part(receive, peer), bytes));
    }
    round.finish = [to = part(receive, rank()), from = part(send, rank()), bytes] { copy(to, from, bytes); };
    Rounds rounds;
    rounds.push_back(std::move(round));
    return rounds;
}

int32_t tclComm_st::create_sum(double factor) {
    const std::lock_guard<std::mutex> lock(mutex_);
    factors_[next_op_] = factor;
    return next_op_++;
}

void tclComm_st::destroy_sum(int32_t op) {
    const std::lock_guard<std::mutex> lock(mutex_);
    require(factors_.erase(op) == 1, tangErrorInvalidValue, "there is no such reduction");
}

uint64_t tclComm_st::begin_work() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++work_;
    return turns_++;
}

void tclComm_st::end_turn() {
    turn_.fetch_add(1, std::memory_order_release);
    segment_.ring(rank());
}

void tclComm_st::end_work() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        --work_;
    }
    work_ended_.notify_all();
}

void tclComm_st::wait_for_work() {
    std::unique_lock<std::mutex> lock(mutex_);
    work_ended_.wait(lock, [this] { return work_ == 0; });
}

void tclComm_st::fail(tangError_t status, const std::string& why) {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (status_.load() != tangSuccess) return;
        failure_ = why;
        status_.store(status, std::memory_order_release);
    }
    // Whoever waits for this rank shall not do so in vain.
    segment_.leave();
}

std::string tclComm_st::failure() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return failure_;
}
