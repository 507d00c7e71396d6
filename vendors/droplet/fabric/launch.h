// What one call, or one group of calls, does on its stream.
#pragma once

#include <memory>
#include <vector>

#include "communicator.h"
#include "runtime/fault.h"
#include "runtime/stream.h"

namespace droplet {

using Comm = std::shared_ptr<tclComm_st>;

// The rounds of one communicator, in the order of its calls; sends and receives go together in the last.
class Launch {
public:
    void add(const Comm& comm, Rounds rounds);
    void send(const Comm& comm, int32_t peer, const void* memory, size_t bytes);
    void receive(const Comm& comm, int32_t peer, void* memory, size_t bytes);

    // Puts it on the stream.
    static void submit(std::unique_ptr<Launch> launch, tangStream_st& stream);

private:
    struct Message {
        void* memory;
        size_t bytes;
    };
    struct Part {
        Comm comm;
        Rounds rounds;
        Round messages;
        std::vector<Message> own_sends, own_receives;  // from the rank to itself, which need no channel
        uint64_t turn = 0;
        bool done = false;
        CollectiveFault fault = CollectiveFault::none;
    };

    Part& part_of(const Comm& comm);
    void run();
    // Whether anything moved, or ended. What fails does so in the communicator.
    static bool step(Part& part);
    static bool step_round(Part& part);

    std::vector<Part> parts_;
};

}  // namespace droplet
