// The peer of the adaptor's benchmark: the same conversions in the straightforward way. Each tensor has a wrapper object
// that keeps what it finds in vectors, and decides at run time what the adaptor's generator decided before.
#pragma once

#include <adaptor/primitives.h>
#include <diopi/diopirt.h>

#include <map>
#include <string>
#include <vector>

namespace benchmarks {

// What a configuration says, as a straightforward adaptor keeps it.
struct Wanted {
    std::map<diopiDtype_t, diopiDtype_t> casts;
    std::vector<std::string> layouts;  // e.g. {"NHWC"}
};

// One tensor of a call: converted when it is made, copied back when it is destroyed.
class TensorWrapper {
public:
    TensorWrapper(diopiContextHandle_t ctx, diopiTensorHandle_t tensor, const Wanted& wanted, bool written)
        : ctx_(ctx),
          original_(tensor),
          used_(tensor),
          written_(written) {
        diopiSize_t sizes{};
        diopiSize_t strides{};
        diopiDtype_t dtype{};
        diopiGetTensorShape(tensor, &sizes);
        diopiGetTensorStride(tensor, &strides);
        diopiGetTensorDtype(tensor, &dtype);
        sizes_.assign(sizes.data, sizes.data + sizes.len);
        strides_.assign(strides.data, strides.data + strides.len);
        const auto cast = wanted.casts.find(dtype);
        const diopiDtype_t target = cast == wanted.casts.end() ? dtype : cast->second;
        const std::vector<int64_t> needed = needed_strides(wanted.layouts);
        if (target == dtype && needed == strides_) return;
        const diopiSize_t made{needed.data(), static_cast<int64_t>(needed.size())};
        diopiRequireTensor(ctx, &used_, &sizes, &made, target, diopi_device);
        if (target != dtype) {
            diopi::adaptor::primitives::cast(ctx, used_, original_);
        } else {
            diopi::adaptor::primitives::copy(ctx, original_, used_);
        }
    }
    ~TensorWrapper() {
        if (written_ && used_ != original_) diopi::adaptor::primitives::cast(ctx_, original_, used_);
    }
    TensorWrapper(const TensorWrapper&) = delete;
    TensorWrapper& operator=(const TensorWrapper&) = delete;

    diopiTensorHandle_t handle() const { return used_; }

private:
    std::vector<int64_t> needed_strides(const std::vector<std::string>& layouts) const {
        std::vector<int64_t> strides(sizes_.size());
        std::vector<size_t> order;  // innermost first
        const bool last = sizes_.size() == 4 && layouts == std::vector<std::string>{"NHWC"};
        if (last) order = {1, 3, 2, 0};
        for (size_t d = sizes_.size(); !last && d-- > 0;) order.push_back(d);
        int64_t next = 1;
        for (const size_t d : order) {
            strides[d] = next;
            next *= sizes_[d];
        }
        return strides;
    }

    diopiContextHandle_t ctx_;
    diopiTensorHandle_t original_;
    diopiTensorHandle_t used_;
    bool written_;
    std::vector<int64_t> sizes_;
    std::vector<int64_t> strides_;
};

}  // namespace benchmarks
