// One message between two ranks, moved piece by piece as its channel has room or bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "segment.h"

namespace droplet {

class Transfer {
public:
    // `memory` is what the chip's kernels use for it. Nothing is moved for 0 bytes, on either side.
    static Transfer send(int32_t peer, const void* memory, size_t bytes);
    static Transfer receive(int32_t peer, void* memory, size_t bytes);

    int32_t peer() const { return peer_; }
    bool sends() const { return sends_; }
    bool done() const { return place_ == whole_; }
    // Moves what can be moved now; whether that was anything. Throws Error (tangErrorRemote) when what comes is not what
    // the other rank sent, or has another size.
    bool step(Segment& segment);
    void corrupt() { corrupt_ = true; }  // a fault on demand: one bit of what is sent

private:
    Transfer(int32_t peer, bool sends, unsigned char* memory, size_t bytes);
    size_t move(Channel& channel, unsigned char* part, size_t bytes);
    void check(unsigned char* moved, size_t bytes);

    int32_t peer_;
    bool sends_;
    bool corrupt_ = false;
    unsigned char* memory_;
    size_t bytes_;
    size_t place_ = 0;  // in the message: its size, its bytes, their checksum
    size_t whole_;
    uint64_t sum_ = 0;
    alignas(8) std::array<unsigned char, 8> size_{};
    alignas(8) std::array<unsigned char, 8> checksum_{};
};

}  // namespace droplet
