// The form of a message, and the steps in which it goes through a channel.
#include "transfer.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/error.h"

namespace droplet {
namespace {

constexpr size_t kEnvelope = 8;  // bytes of the size before, and of the checksum behind

}  // namespace

Transfer::Transfer(int32_t peer, bool sends, unsigned char* memory, size_t bytes)
    : peer_(peer),
      sends_(sends),
      memory_(memory),
      bytes_(bytes),
      whole_(bytes == 0 ? 0 : bytes + 2 * kEnvelope) {
    const uint64_t size = bytes;
    std::memcpy(size_.data(), &size, kEnvelope);
}

Transfer Transfer::send(int32_t peer, const void* memory, size_t bytes) {
    return {peer, true, static_cast<unsigned char*>(const_cast<void*>(memory)), bytes};
}

Transfer Transfer::receive(int32_t peer, void* memory, size_t bytes) {
    return {peer, false, static_cast<unsigned char*>(memory), bytes};
}

bool Transfer::step(Segment& segment) {
    Channel& channel = sends_ ? segment.to(peer_) : segment.from(peer_);
    const size_t before = place_;
    while (!done()) {
        size_t moved = 0;
        if (place_ < kEnvelope) {
            moved = move(channel, size_.data() + place_, kEnvelope - place_);
        } else if (place_ < kEnvelope + bytes_) {
            const size_t at = place_ - kEnvelope;
            moved = move(channel, memory_ + at, bytes_ - at);
            check(memory_ + at, moved);
        } else {
            const size_t at = place_ - kEnvelope - bytes_;
            if (sends_ && at == 0) std::memcpy(checksum_.data(), &sum_, kEnvelope);
            moved = move(channel, checksum_.data() + at, kEnvelope - at);
        }
        if (moved == 0) break;
        const bool measured = place_ < kEnvelope && place_ + moved >= kEnvelope;
        place_ += moved;
        uint64_t told = 0;
        if (!sends_ && measured) {
            std::memcpy(&told, size_.data(), kEnvelope);
            if (told != bytes_) {
                throw Error(tangErrorRemote, "rank " + std::to_string(peer_) + " sent " + std::to_string(told) +
                                                 " bytes where " + std::to_string(bytes_) +
                                                 " were expected: the ranks do not make the same calls");
            }
        } else if (!sends_ && done()) {
            std::memcpy(&told, checksum_.data(), kEnvelope);
            if (told != sum_) {
                throw Error(tangErrorRemote,
                            "what came from rank " + std::to_string(peer_) + " has another checksum than what it sent");
            }
        }
    }
    if (place_ == before) return false;
    segment.ring(peer_);
    return true;
}

// Whole words, but for the end of a part, so that checksums on both sides see the same words.
size_t Transfer::move(Channel& channel, unsigned char* part, size_t bytes) {
    const uint64_t written = channel.written.load(std::memory_order_acquire);
    const uint64_t read = channel.read.load(std::memory_order_acquire);
    const uint64_t at = sends_ ? written : read;
    const size_t possible = sends_ ? Channel::kBytes - (written - read) : written - read;
    size_t count = std::min(bytes, possible);
    if (count < bytes) count -= count % kEnvelope;
    if (count == 0) return 0;
    const size_t first = std::min(count, Channel::kBytes - at % Channel::kBytes);
    unsigned char* const ring = channel.data;
    if (sends_) {
        std::memcpy(ring + at % Channel::kBytes, part, first);
        std::memcpy(ring, part + first, count - first);
        if (corrupt_ && place_ >= kEnvelope) {
            ring[at % Channel::kBytes] ^= 1u;
            corrupt_ = false;
        }
        channel.written.store(written + count, std::memory_order_release);
    } else {
        std::memcpy(part, ring + at % Channel::kBytes, first);
        std::memcpy(part + first, ring, count - first);
        channel.read.store(read + count, std::memory_order_release);
    }
    return count;
}

void Transfer::check(unsigned char* moved, size_t bytes) {
    for (size_t at = 0; at < bytes; at += kEnvelope) {
        uint64_t word = 0;
        std::memcpy(&word, moved + at, std::min(kEnvelope, bytes - at));
        sum_ = ((sum_ << 7 | sum_ >> 57) ^ word) * 0x9e3779b97f4a7c15u;
    }
}

}  // namespace droplet
