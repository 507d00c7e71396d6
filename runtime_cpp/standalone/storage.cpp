// Allocation, transfer and the guards of storages.
#include "storage.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "error.h"
#include "vendor.h"

namespace diopi::standalone {
namespace {

constexpr int kFirstFresh = 0xFF;
constexpr unsigned char kGuardBits = 0x24;  // in which a guard differs from fresh memory
constexpr std::align_val_t kHostAlignment{512};

std::atomic<int> fresh{-1};  // negative until it is set

unsigned char fresh_byte() { return static_cast<unsigned char>(fresh_is_set() ? fresh.load() : kFirstFresh); }

void* allocated(uint64_t bytes, diopiDevice_t device) {
    if (bytes == 0) return nullptr;
    return device == diopi_device ? vendor().allocate(bytes) : allocate_between_gaps(bytes, kHostAlignment);
}

}  // namespace

void set_fresh(unsigned char byte) { fresh.store(byte); }

bool fresh_is_set() { return fresh.load() >= 0; }

Storage::Storage(uint64_t bytes, diopiDevice_t device)
    : guard_(fresh_byte() ^ kGuardBits),
      bytes_(bytes),
      device_(device),
      device_index_(device == diopi_device ? vendor().current_device() : -1) {
    const uint64_t total = bytes + 2 * kGuardBytes;
    // The device first: when it is full, its words are the ones to give.
    memory_ = allocated(total, device);
    try {
        std::vector<unsigned char> content(total, guard_);
        std::fill_n(content.begin() + kGuardBytes, bytes, fresh_byte());
        copy_in(memory_, content.data(), total);
    } catch (...) {
        release();
        throw;
    }
}

Storage::~Storage() { release(); }

void Storage::release() const {
    if (memory_ == nullptr) return;
    if (device_ == diopi_host) {
        free_between_gaps(memory_, bytes_ + 2 * kGuardBytes, kHostAlignment);
    } else {
        vendor().api().free(memory_);
    }
}

void Storage::copy_in(void* memory, const void* source, uint64_t bytes) const {
    if (bytes == 0) return;
    if (device_ == diopi_host) {
        std::memcpy(memory, source, bytes);
    } else {
        vendor().write(memory, source, bytes);
    }
}

void Storage::refill() const { copy_in(data(), std::vector<unsigned char>(bytes_, fresh_byte()).data(), bytes_); }

void Storage::write(const void* source, uint64_t bytes) const {
    require(bytes <= bytes_, "more bytes are written than the storage has");
    copy_in(data(), source, bytes);
}

void Storage::read(void* destination, uint64_t bytes) const {
    require(bytes <= bytes_, "more bytes are read than the storage has");
    if (device_ == diopi_host) {
        if (bytes > 0) std::memcpy(destination, data(), bytes);
    } else {
        vendor().read(destination, data(), bytes);
    }
}

void Storage::check_guards() const {
    if constexpr (kGuardBytes == 0) return;
    std::vector<unsigned char> front(kGuardBytes);
    std::vector<unsigned char> back(kGuardBytes);
    if (device_ == diopi_host) {
        std::memcpy(front.data(), memory_, kGuardBytes);
        std::memcpy(back.data(), static_cast<char*>(data()) + bytes_, kGuardBytes);
    } else {
        vendor().read(front.data(), memory_, kGuardBytes);
        vendor().read(back.data(), static_cast<char*>(data()) + bytes_, kGuardBytes);
    }
    const auto written = [this](unsigned char byte) { return byte != guard_; };
    const auto before = std::find_if(front.rbegin(), front.rend(), written);
    if (before != front.rend()) {
        throw Error("something was written " + std::to_string(before - front.rbegin() + 1) +
                    " bytes before a tensor of " + std::to_string(bytes_) + " bytes");
    }
    const auto behind = std::find_if(back.begin(), back.end(), written);
    if (behind != back.end()) {
        throw Error("something was written " + std::to_string(behind - back.begin() + 1) +
                    " bytes behind a tensor of " + std::to_string(bytes_) + " bytes");
    }
}

}  // namespace diopi::standalone
