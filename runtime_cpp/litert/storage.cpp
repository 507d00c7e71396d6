// Allocation, transfer and the guards of storages.
#include "storage.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "error.h"
#include "vendor.h"

namespace diopi::litert {
namespace {

constexpr unsigned char kGuard = 0xDB;
constexpr unsigned char kFresh = 0xFF;
constexpr std::align_val_t kHostAlignment{512};

}  // namespace

Storage::Storage(uint64_t bytes, diopiDevice_t device)
    : bytes_(bytes), device_(device), device_index_(device == diopi_device ? vendor().current_device() : -1) {
    const uint64_t total = bytes + 2 * kGuardBytes;
    // The device first: when it is full, its words are the ones to give.
    memory_ = device == diopi_device ? vendor().allocate(total) : ::operator new(total, kHostAlignment);
    try {
        std::vector<unsigned char> content(total, kGuard);
        std::fill_n(content.begin() + kGuardBytes, bytes, kFresh);
        if (device == diopi_device) {
            vendor().write(memory_, content.data(), total);
        } else {
            std::memcpy(memory_, content.data(), total);
        }
    } catch (...) {
        release();
        throw;
    }
}

Storage::~Storage() { release(); }

void Storage::release() const {
    if (device_ == diopi_host) {
        ::operator delete(memory_, kHostAlignment);
    } else {
        vendor().api().free(memory_);
    }
}

void Storage::write(const void* source, uint64_t bytes) const {
    require(bytes <= bytes_, "more bytes are written than the storage has");
    if (device_ == diopi_host) {
        if (bytes > 0) std::memcpy(data(), source, bytes);
    } else {
        vendor().write(data(), source, bytes);
    }
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
    std::vector<unsigned char> front(kGuardBytes);
    std::vector<unsigned char> back(kGuardBytes);
    if (device_ == diopi_host) {
        std::memcpy(front.data(), memory_, kGuardBytes);
        std::memcpy(back.data(), static_cast<char*>(data()) + bytes_, kGuardBytes);
    } else {
        vendor().read(front.data(), memory_, kGuardBytes);
        vendor().read(back.data(), static_cast<char*>(data()) + bytes_, kGuardBytes);
    }
    const auto written = [](unsigned char byte) { return byte != kGuard; };
    const auto before = std::find_if(front.rbegin(), front.rend(), written);
    if (before != front.rend()) {
        throw Error("something was written " + std::to_string(before - front.rbegin() + 1) + " bytes before a tensor of " +
                    std::to_string(bytes_) + " bytes");
    }
    const auto behind = std::find_if(back.begin(), back.end(), written);
    if (behind != back.end()) {
        throw Error("something was written " + std::to_string(behind - back.begin() + 1) + " bytes behind a tensor of " +
                    std::to_string(bytes_) + " bytes");
    }
}

}  // namespace diopi::litert
