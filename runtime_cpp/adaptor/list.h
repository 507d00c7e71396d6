// The converted handles of a list of tensors; the list that the caller gave stays as it is.
#pragma once

#include <memory>
#include <new>

#include "call.h"

namespace diopi::adaptor {

// `Handle` is diopiConstTensorHandle_t for lists that are read, diopiTensorHandle_t for lists that are written.
template <typename Handle>
class List {
public:
    template <class AnyRule>
    List(Call& call, Use use, Handle* tensors, int64_t count, const AnyRule& rule, const char* name) noexcept
        : data_(tensors) {
        for (int64_t i = 0; tensors != nullptr && i < count; ++i) {
            const Handle converted = convert(call, use, tensors[i], rule, name);
            if (converted == tensors[i]) continue;
            // The first entry that changes makes the list a copy: most lists need none.
            if (data_ == tensors && !own(call, tensors, count)) return;
            data_[i] = converted;
        }
    }
    List(const List&) = delete;
    List& operator=(const List&) = delete;

    Handle* data() const noexcept { return data_; }

private:
    static constexpr int64_t kInline = 8;

    template <class AnyRule>
    static diopiConstTensorHandle_t convert(Call& call, Use, diopiConstTensorHandle_t tensor, const AnyRule& rule,
                                            const char* name) noexcept {
        return call.in(tensor, rule, name);
    }
    template <class AnyRule>
    static diopiTensorHandle_t convert(Call& call, Use use, diopiTensorHandle_t tensor, const AnyRule& rule,
                                       const char* name) noexcept {
        switch (use) {
            case Use::in: return call.in(tensor, rule, name);
            case Use::out: return call.out(tensor, rule, name);
            case Use::inout: return call.inout(tensor, rule, name);
        }
        return tensor;
    }

    bool own(Call& call, const Handle* tensors, int64_t count) noexcept {
        data_ = inline_;
        if (count > kInline) {
            heap_.reset(new (std::nothrow) Handle[count]);
            data_ = heap_.get();
        }
        if (data_ == nullptr) {
            call.fail(diopiErrorOccurred);
            return false;
        }
        for (int64_t i = 0; i < count; ++i) data_[i] = tensors[i];
        return true;
    }

    Handle* data_;
    std::unique_ptr<Handle[]> heap_;
    Handle inline_[kInline];
};

}  // namespace diopi::adaptor
