// The collectives of droplet's fabric: ranks as threads, random calls beside the same computed at once, and failures.
#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "tcl.h"

namespace {

constexpr int32_t kRanks = 4;

// Runs `body` with a communicator of each rank.
template <class Body>
void on_ranks(int32_t ranks, Body&& body) {
    tclUniqueId_t id = {};
    CHECK(tclGetUniqueId(&id) == tangSuccess);
    std::vector<std::thread> threads;
    for (int32_t rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&, rank] {
            tclComm_t comm = nullptr;
            CHECK(tclCommInitRank(&comm, ranks, id, rank) == tangSuccess);
            body(comm, rank);
        });
    }
    for (std::thread& thread : threads) thread.join();
}

class Stream {
public:
    Stream() { CHECK(tangStreamCreate(&handle_) == tangSuccess); }
    ~Stream() { tangStreamDestroy(handle_); }
    tangStream_t get() const { return handle_; }
    void synchronize() const { CHECK(tangStreamSynchronize(handle_) == tangSuccess); }

private:
    tangStream_t handle_ = nullptr;
};

template <class T>
class Memory {
public:
    explicit Memory(const std::vector<T>& values) : count_(values.size()) {
        CHECK(tangMalloc(&pointer_, count_ * sizeof(T)) == tangSuccess);
        write(values);
    }
    ~Memory() { tangFree(pointer_); }
    void write(const std::vector<T>& values) const {
        CHECK(tangMemcpy(pointer_, values.data(), values.size() * sizeof(T), tangMemcpyHostToDevice) == tangSuccess);
    }
    T* get() const { return static_cast<T*>(pointer_); }
    std::vector<T> values() const {
        std::vector<T> result(count_);
        CHECK(tangMemcpy(result.data(), pointer_, count_ * sizeof(T), tangMemcpyDeviceToHost) == tangSuccess);
        return result;
    }

private:
    size_t count_;
    void* pointer_ = nullptr;
};

// What a rank has in a call.
std::vector<int32_t> input(int32_t rank, size_t count, uint32_t call) {
    std::mt19937 draw(call * 31 + static_cast<uint32_t>(rank));
    std::vector<int32_t> values(count);
    for (int32_t& value : values) value = static_cast<int32_t>(draw() % 1000);
    return values;
}

std::vector<int32_t> reduced(int32_t op, int32_t ranks, size_t count, uint32_t call) {
    std::vector<int32_t> result = input(0, count, call);
    for (int32_t rank = 1; rank < ranks; ++rank) {
        const std::vector<int32_t> values = input(rank, count, call);
        for (size_t at = 0; at < count; ++at) {
            int32_t& value = result[at];
            value = op == tclMax   ? std::max(value, values[at])
                    : op == tclMin ? std::min(value, values[at])
                                   : value + values[at];
        }
    }
    for (int32_t& value : result) value = op == tclAvg ? value / ranks : value;
    return result;
}

constexpr size_t kMostOfAPart = 90000;

// One call of each kind, chosen by a number that the ranks share. The memory was there before: to free some waits for the
// device, which other ranks of this process use as well.
void random_call(tclComm_t comm, int32_t rank, int32_t ranks, uint32_t call, tangStream_t stream,
                 const Memory<int32_t>& from, const Memory<int32_t>& to) {
    std::mt19937 draw(call);
    const size_t part = draw() % 3 == 0 ? draw() % kMostOfAPart + 1 : draw() % 200 + 1;
    const size_t all = part * static_cast<size_t>(ranks);
    const int32_t ops[] = {tclSum, tclMax, tclMin, tclAvg};
    const int32_t op = ops[draw() % 4];
    const auto root = static_cast<int32_t>(draw() % static_cast<uint32_t>(ranks));
    const auto mine = static_cast<size_t>(rank);
    from.write(input(rank, all, call));
    to.write(std::vector<int32_t>(all, -1));
    std::vector<int32_t> expected(all, -1);
    switch (draw() % 6) {
        case 0:
            CHECK(tclAllReduce(from.get(), to.get(), all, tclInt32, op, comm, stream) == tangSuccess);
            expected = reduced(op, ranks, all, call);
            break;
        case 1:
            CHECK(tclReduce(from.get(), to.get(), all, tclInt32, op, root, comm, stream) == tangSuccess);
            if (rank == root) expected = reduced(op, ranks, all, call);
            break;
        case 2:
            CHECK(tclReduceScatter(from.get(), to.get(), part, tclInt32, op, comm, stream) == tangSuccess);
            std::copy_n(reduced(op, ranks, all, call).begin() + static_cast<int64_t>(mine * part), part,
                        expected.begin());
            break;
        case 3:
            CHECK(tclBroadcast(from.get(), to.get(), all, tclInt32, root, comm, stream) == tangSuccess);
            expected = input(root, all, call);
            break;
        case 4:
            CHECK(tclAllGather(from.get(), to.get(), part, tclInt32, comm, stream) == tangSuccess);
            for (int32_t peer = 0; peer < ranks; ++peer) {
                const std::vector<int32_t> theirs = input(peer, all, call);
                std::copy_n(theirs.begin(), part, expected.begin() + static_cast<int64_t>(part) * peer);
            }
            break;
        default:
            CHECK(tclAllToAll(from.get(), to.get(), part, tclInt32, comm, stream) == tangSuccess);
            for (int32_t peer = 0; peer < ranks; ++peer) {
                const std::vector<int32_t> theirs = input(peer, all, call);
                std::copy_n(theirs.begin() + static_cast<int64_t>(part) * rank, part,
                            expected.begin() + static_cast<int64_t>(part) * peer);
            }
    }
    CHECK(tangStreamSynchronize(stream) == tangSuccess);
    std::vector<int32_t> got = to.values();
    got.resize(all);
    CHECK(got == expected);
    tangError_t error = tangErrorUnknown;
    CHECK(tclCommGetAsyncError(comm, &error) == tangSuccess && error == tangSuccess);
}

// As many calls as the environment says: a soak is a number.
uint32_t calls() {
    const char* text = std::getenv("FABRIC_CALLS");
    return text == nullptr ? 60 : static_cast<uint32_t>(std::atoi(text));
}

void random_calls_give_what_is_computed_at_once() {
    on_ranks(kRanks, [](tclComm_t comm, int32_t rank) {
        const Stream first;
        const Stream second;
        const std::vector<int32_t> nothing(kMostOfAPart * kRanks);
        const Memory<int32_t> from(nothing);
        const Memory<int32_t> to(nothing);
        for (uint32_t call = 0; call < calls(); ++call) {
            random_call(comm, rank, kRanks, call, call % 3 == 0 ? second.get() : first.get(), from, to);
        }
        CHECK(tclCommDestroy(comm) == tangSuccess);
    });
}

void groups_of_messages_have_no_order() {
    on_ranks(kRanks, [](tclComm_t comm, int32_t rank) {
        constexpr size_t kCount = 300000;  // more than a channel holds
        const Stream stream;
        const Memory<int32_t> from(std::vector<int32_t>(kCount, rank));
        const Memory<int32_t> to(std::vector<int32_t>(kCount * kRanks, -1));
        CHECK(tclGroupStart() == tangSuccess);
        for (int32_t peer = 0; peer < kRanks; ++peer) {
            CHECK(tclSend(from.get(), kCount, tclInt32, peer, comm, stream.get()) == tangSuccess);
        }
        for (int32_t peer = kRanks - 1; peer >= 0; --peer) {
            int32_t* place = to.get() + static_cast<size_t>(peer) * kCount;
            CHECK(tclRecv(place, kCount, tclInt32, peer, comm, stream.get()) == tangSuccess);
        }
        CHECK(tclGroupEnd() == tangSuccess);
        stream.synchronize();
        const std::vector<int32_t> got = to.values();
        for (int32_t peer = 0; peer < kRanks; ++peer) CHECK(got[static_cast<size_t>(peer) * kCount + 7] == peer);
        CHECK(tclCommDestroy(comm) == tangSuccess);
    });
}

void calls_on_several_streams_are_in_order() {
    on_ranks(2, [](tclComm_t comm, int32_t) {
        constexpr size_t kCount = 100000;
        const Stream streams[2];
        const Memory<float> values(std::vector<float>(kCount, 1));
        const Memory<float> other(std::vector<float>(kCount, 1));
        for (int call = 0; call < 20; ++call) {
            const Memory<float>& memory = call % 2 == 0 ? values : other;
            CHECK(tclAllReduce(memory.get(), memory.get(), kCount, tclFloat32, tclSum, comm, streams[call % 2].get()) ==
                  tangSuccess);
        }
        for (const Stream& stream : streams) stream.synchronize();
        CHECK(values.values()[3] == 1024 && other.values()[3] == 1024);
        CHECK(tclCommDestroy(comm) == tangSuccess);
    });
}

void multiplied_sums_have_a_factor() {
    on_ranks(2, [](tclComm_t comm, int32_t rank) {
        const Stream stream;
        int32_t op = 0;
        CHECK(tclRedOpCreatePreMulSum(&op, 0.5, comm) == tangSuccess);
        const Memory<double> values({2.0 + rank, 4.0});
        CHECK(tclAllReduce(values.get(), values.get(), 2, tclFloat64, op, comm, stream.get()) == tangSuccess);
        CHECK(tclRedOpDestroy(op, comm) == tangSuccess);
        stream.synchronize();
        CHECK(values.values()[0] == 2.5 && values.values()[1] == 4.0);
        const Memory<int32_t> whole({1});
        CHECK(tclAllReduce(whole.get(), whole.get(), 1, tclInt32, op, comm, stream.get()) == tangErrorInvalidValue);
        CHECK_SAYS(tangGetLastErrorMessage(), "there is no such reduction");
        CHECK(tclCommDestroy(comm) == tangSuccess);
    });
}

void an_abort_ends_what_waits() {
    on_ranks(2, [](tclComm_t comm, int32_t rank) {
        if (rank == 1) {
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
            CHECK(tclCommDestroy(comm) == tangSuccess);
            return;
        }
        const Stream stream;
        const Memory<float> values({1});
        CHECK(tclAllReduce(values.get(), values.get(), 1, tclFloat32, tclSum, comm, stream.get()) == tangSuccess);
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        CHECK(tangStreamQuery(stream.get()) == tangErrorNotReady);
        CHECK(tclCommAbort(comm) == tangSuccess);
        stream.synchronize();
        CHECK(tclAllReduce(values.get(), values.get(), 1, tclFloat32, tclSum, comm, stream.get()) ==
              tangErrorInvalidHandle);
        CHECK_SAYS(tangGetLastErrorMessage(), "no such communicator");
    });
}

void a_rank_that_leaves_is_the_others_error() {
    on_ranks(2, [](tclComm_t comm, int32_t rank) {
        if (rank == 1) {
            CHECK(tclCommDestroy(comm) == tangSuccess);
            return;
        }
        const Stream stream;
        const Memory<float> values({1});
        const tangError_t launched =
            tclAllReduce(values.get(), values.get(), 1, tclFloat32, tclSum, comm, stream.get());
        CHECK(launched == tangSuccess);
        stream.synchronize();
        tangError_t error = tangSuccess;
        CHECK(tclCommGetAsyncError(comm, &error) == tangSuccess && error == tangErrorRemote);
        CHECK_SAYS(tclGetLastError(comm), "rank 1 has ended or left");
        CHECK(tclCommDestroy(comm) == tangSuccess);
    });
}

void different_calls_are_an_error() {
    on_ranks(2, [](tclComm_t comm, int32_t rank) {
        const Stream stream;
        const Memory<float> values(std::vector<float>(8, 1));
        const size_t count = rank == 0 ? 4 : 8;
        CHECK(tclAllReduce(values.get(), values.get(), count, tclFloat32, tclSum, comm, stream.get()) == tangSuccess);
        stream.synchronize();
        tangError_t error = tangSuccess;
        CHECK(tclCommGetAsyncError(comm, &error) == tangSuccess && error == tangErrorRemote);
        CHECK(tclCommDestroy(comm) == tangSuccess);
    });
}

void a_corrupted_answer_is_an_error() {
    on_ranks(2, [](tclComm_t comm, int32_t rank) {
        const Stream stream;
        const Memory<float> values(std::vector<float>(100, 1));
        // Both ranks are of one process: whose call is the faulty one does not matter.
        if (rank == 0) CHECK(tangSetFaultPlan("link-corrupt:1") == tangSuccess);
        std::this_thread::sleep_for(std::chrono::milliseconds(rank == 0 ? 0 : 100));
        CHECK(tclAllReduce(values.get(), values.get(), 100, tclFloat32, tclSum, comm, stream.get()) == tangSuccess);
        stream.synchronize();
        tangError_t error = tangSuccess;
        CHECK(tclCommGetAsyncError(comm, &error) == tangSuccess && error == tangErrorRemote);
        CHECK(tclCommDestroy(comm) == tangSuccess);
    });
}

void wrong_arguments_are_refused() {
    tclUniqueId_t id = {};
    tclComm_t comm = nullptr;
    CHECK(tclGetUniqueId(&id) == tangSuccess);
    CHECK(tclCommInitRank(&comm, 2, id, 2) == tangErrorInvalidValue);
    CHECK_SAYS(tangGetLastErrorMessage(), "less than the number of ranks");
    CHECK(tclCommInitRank(&comm, 1, id, 0) == tangSuccess);
    const Memory<float> values({1});
    CHECK(tclBroadcast(values.get(), values.get(), 1, tclFloat32, 1, comm, nullptr) == tangErrorInvalidValue);
    CHECK_SAYS(tangGetLastErrorMessage(), "no such rank");
    CHECK(tclGroupEnd() == tangErrorInvalidValue);
    CHECK(tclCommDestroy(comm) == tangSuccess);
    CHECK(tclCommDestroy(comm) == tangErrorInvalidHandle);
}

constexpr NamedTest kTests[] = {
    {"random_calls_give_what_is_computed_at_once", random_calls_give_what_is_computed_at_once},
    {"groups_of_messages_have_no_order", groups_of_messages_have_no_order},
    {"calls_on_several_streams_are_in_order", calls_on_several_streams_are_in_order},
    {"multiplied_sums_have_a_factor", multiplied_sums_have_a_factor},
    {"an_abort_ends_what_waits", an_abort_ends_what_waits},
    {"a_rank_that_leaves_is_the_others_error", a_rank_that_leaves_is_the_others_error},
    {"different_calls_are_an_error", different_calls_are_an_error},
    {"a_corrupted_answer_is_an_error", a_corrupted_answer_is_an_error},
    {"wrong_arguments_are_refused", wrong_arguments_are_refused},
};

}  // namespace

int main(int argc, char** argv) { return run_named_test(kTests, argc, argv); }
