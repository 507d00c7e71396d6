// Moves the messages of a launch until all have come, or a communicator fails.
#include "launch.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include <unistd.h>

#include "runtime/chip.h"
#include "runtime/error.h"

namespace droplet {
namespace {

// How long a rank sleeps before it looks whether the others are still there.
constexpr std::chrono::milliseconds kLook{20};
// The same where bells of several communicators may ring.
constexpr std::chrono::microseconds kLookAround{200};

}  // namespace

Launch::Part& Launch::part_of(const Comm& comm) {
    require(comm->status() == tangSuccess, comm->status(), "the communicator has failed before: see tclGetLastError");
    const auto found = std::find_if(parts_.begin(), parts_.end(), [&](const Part& part) { return part.comm == comm; });
    Part& part = found != parts_.end() ? *found : parts_.emplace_back();
    part.comm = comm;
    if (const CollectiveFault fault = chip().faults().next_collective(); fault != CollectiveFault::none) {
        part.fault = fault;
    }
    return part;
}

void Launch::add(const Comm& comm, Rounds rounds) {
    Part& part = part_of(comm);
    for (Round& round : rounds) part.rounds.push_back(std::move(round));
}

void Launch::send(const Comm& comm, int32_t peer, const void* memory, size_t bytes) {
    comm->check_rank(peer);
    Part& part = part_of(comm);
    void* const address = tangDeviceAddress(memory);
    if (peer == comm->rank()) {
        part.own_sends.push_back({address, bytes});
    } else {
        part.messages.transfers.push_back(Transfer::send(peer, address, bytes));
    }
}

void Launch::receive(const Comm& comm, int32_t peer, void* memory, size_t bytes) {
    comm->check_rank(peer);
    Part& part = part_of(comm);
    void* const address = tangDeviceAddress(memory);
    if (peer == comm->rank()) {
        part.own_receives.push_back({address, bytes});
    } else {
        part.messages.transfers.push_back(Transfer::receive(peer, address, bytes));
    }
}

void Launch::submit(std::unique_ptr<Launch> launch, tangStream_st& stream) {
    stream.refuse_while_recording("a collective was asked for");
    for (Part& part : launch->parts_) {
        require(part.own_sends.size() == part.own_receives.size(), tangErrorInvalidValue,
                "a rank sends to itself in a group that receives from itself as often");
        for (size_t at = 0; at < part.own_sends.size(); ++at) {
            require(part.own_sends[at].bytes == part.own_receives[at].bytes, tangErrorInvalidValue,
                    "a rank sends to itself as much as it receives");
        }
        part.messages.finish = [sends = part.own_sends, receives = part.own_receives] {
            for (size_t at = 0; at < sends.size(); ++at) {
                std::memmove(receives[at].memory, sends[at].memory, sends[at].bytes);
            }
        };
        part.rounds.push_back(std::move(part.messages));
        if (part.fault == CollectiveFault::corrupt) {
            for (Round& round : part.rounds) {
                for (Transfer& transfer : round.transfers) transfer.corrupt();
            }
        }
    }
    for (Part& part : launch->parts_) part.turn = part.comm->begin_work();
    Launch* const argument = launch.release();
    stream.make_async();
    stream.submit(
        Work::control,
        [](const void* args) {
            const std::unique_ptr<Launch> mine(*static_cast<Launch* const*>(args));
            mine->run();
            for (const Part& part : mine->parts_) part.comm->end_work();
        },
        &argument, sizeof argument);
}

void Launch::run() {
    for (;;) {
        const auto unfinished = std::find_if(parts_.begin(), parts_.end(), [](const Part& part) { return !part.done; });
        if (unfinished == parts_.end()) return;
        const uint32_t seen = unfinished->comm->segment().rung();
        bool moved = false;
        for (Part& part : parts_) moved = step(part) || moved;
        if (moved) {
            std::this_thread::sleep_for(chip().faults().link_delay());
        } else {
            unfinished->comm->segment().wait(seen, parts_.size() == 1 ? std::chrono::microseconds(kLook) : kLookAround);
        }
    }
}

bool Launch::step(Part& part) {
    if (part.done || !part.comm->has_turn(part.turn)) return false;
    if (part.comm->status() != tangSuccess) part.rounds.clear();
    if (part.rounds.empty()) {
        part.done = true;
        part.comm->end_turn();
        return true;
    }
    try {
        return step_round(part);
    } catch (const Error& error) {
        part.comm->fail(error.code(), error.what());
    } catch (const std::exception& error) {
        part.comm->fail(tangErrorUnknown, error.what());
    }
    return true;
}

bool Launch::step_round(Part& part) {
    if (part.fault == CollectiveFault::hang) return false;
    Segment& segment = part.comm->segment();
    std::vector<Transfer>& transfers = part.rounds.front().transfers;
    // Messages of one channel go one after another.
    std::vector<bool> busy(2 * static_cast<size_t>(segment.ranks()));
    std::vector<Transfer*> waiting;
    bool moved = false;
    for (Transfer& transfer : transfers) {
        const size_t channel = 2 * static_cast<size_t>(transfer.peer()) + (transfer.sends() ? 1 : 0);
        if (transfer.done() || busy[channel]) continue;
        moved = transfer.step(segment) || moved;
        if (!transfer.done()) {
            busy[channel] = true;
            waiting.push_back(&transfer);
        }
    }
    if (part.fault == CollectiveFault::die) static_cast<void>(kill(getpid(), SIGKILL));
    if (waiting.empty()) {
        if (part.rounds.front().finish) part.rounds.front().finish();
        part.rounds.pop_front();
        return true;
    }
    if (moved) return true;
    for (Transfer* transfer : waiting) {
        // It may have sent all that is needed before it went.
        if (segment.gone(transfer->peer()) && !transfer->step(segment)) {
            throw Error(tangErrorRemote, "rank " + std::to_string(transfer->peer()) + " has ended or left");
        }
    }
    return false;
}

}  // namespace droplet
