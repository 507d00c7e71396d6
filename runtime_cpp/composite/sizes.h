// Lists of whole numbers, in place: sizes of temporaries, and lists that are put together for a call.
#pragma once

#include <diopi/diopirt.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "number.h"

namespace diopi::composite {

class Sizes {
public:
    static constexpr int64_t kCapacity = 32;

    Sizes() = default;
    Sizes(const Number& value) { append(value.integer()); }
    Sizes(int value) { append(value); }
    Sizes(int64_t value) { append(value); }
    Sizes(const int64_t* value) {
        if (value != nullptr) append(*value);
    }
    Sizes(const diopiSize_t& list) {
        for (int64_t i = 0; i < list.len; ++i) append(list.data[i]);
    }

    int64_t length() const { return length_; }
    int64_t operator[](int64_t at) const { return values_[static_cast<size_t>(at)]; }
    int64_t& operator[](int64_t at) { return values_[static_cast<size_t>(at)]; }
    // Whether all that was appended found room.
    bool complete() const { return complete_; }
    // Valid as long as the list is.
    diopiSize_t view() const { return {values_.data(), length_}; }

    void append(int64_t value) { insert(length_, value); }
    void append(const Sizes& others) {
        complete_ = complete_ && others.complete_;
        for (int64_t i = 0; i < others.length_; ++i) append(others[i]);
    }
    void insert(int64_t at, int64_t value) {
        complete_ = complete_ && length_ < kCapacity && at >= 0 && at <= length_;
        if (!complete_) return;
        std::copy_backward(values_.begin() + at, values_.begin() + length_, values_.begin() + length_ + 1);
        values_[static_cast<size_t>(at)] = value;
        ++length_;
    }
    void erase(int64_t at) {
        std::copy(values_.begin() + at + 1, values_.begin() + length_, values_.begin() + at);
        --length_;
    }

private:
    std::array<int64_t, kCapacity> values_{};
    int64_t length_ = 0;
    bool complete_ = true;
};

}  // namespace diopi::composite
