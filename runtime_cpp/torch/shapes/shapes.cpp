// Shape rules; formulas are those of PyTorch's documentation of each operator.
#include "each.h"
#include "shapes.h"

#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <c10/core/WrapDimMinimal.h>
#include <c10/util/Exception.h>

#include <cmath>

namespace dipu::shape {
namespace {

int64_t window_count(int64_t input, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil_mode) {
    TORCH_CHECK(stride > 0, "stride should be greater than zero, but got ", stride);
    const int64_t span = input + 2 * padding - dilation * (kernel - 1) - 1;
    const int64_t rounded = span + (ceil_mode ? stride - 1 : 0);
    int64_t count = (rounded >= 0 ? rounded / stride : -((stride - 1 - rounded) / stride)) + 1;
    if (ceil_mode && (count - 1) * stride >= input + padding) {
        --count;
    }
    return count;
}

}  // namespace

Shape broadcast(Sizes first, Sizes second) { return at::infer_size_dimvector(first, second); }

Shape reduced(Sizes input, const Dims& dim, bool keepdim) {
    auto gone = at::dim_list_to_bitset(dim.values(), input.size());
    if (dim.values().empty()) {
        gone.set();
    }
    Shape out;
    for (std::size_t i = 0; i < input.size(); ++i) {
        if (!gone[i]) {
            out.push_back(input[i]);
        } else if (keepdim) {
            out.push_back(1);
        }
    }
    return out;
}

Shape resized(Sizes input, Sizes last) {
    TORCH_CHECK(input.size() >= last.size(), "expected at least ", last.size(), " dimensions, but got ", input.size());
    Shape out(input.begin(), input.end() - static_cast<std::ptrdiff_t>(last.size()));
    out.append(last.begin(), last.end());
    return out;
}

Shape loss(Sizes input, int64_t reduction) { return reduction == 0 ? Shape(input.begin(), input.end()) : Shape(); }

Shape statistics(Sizes input, Sizes normalized) {
    TORCH_CHECK(input.size() >= normalized.size(), "Given normalized_shape=", normalized,
                ", expected input with at least ", normalized.size(), " dimensions, but got input of size", input);
    Shape out(input.begin(), input.end() - static_cast<std::ptrdiff_t>(normalized.size()));
    out.append(normalized.size(), 1);
    return out;
}

Shape channels(Sizes input) {
    TORCH_CHECK(input.size() >= 2, "expected at least 2 dimensions, but got ", input.size());
    return {input[1]};
}

Shape conv_output(Sizes input, Sizes weight, Sizes stride, Sizes padding, Sizes dilation) {
    TORCH_CHECK(input.size() == weight.size() && input.size() >= 3,
                "expected input and weight of the same rank, but got ", input, " and ", weight);
    Shape out{input[0], weight[0]};
    for (std::size_t i = 2; i < input.size(); ++i) {
        const int64_t count =
            window_count(input[i], weight[i], each(stride, i - 2), each(padding, i - 2), each(dilation, i - 2), false);
        TORCH_CHECK(count > 0, "the kernel ", weight.slice(2), " is larger than the padded input ", input.slice(2));
        out.push_back(count);
    }
    return out;
}

Shape pool_output(Sizes input, Sizes kernel, Sizes stride, Sizes padding, Sizes dilation, bool ceil_mode) {
    // A single number stands for every dimension but two, or is that of a sequence without a batch.
    const std::size_t spatial = kernel.size() == 1 ? (input.size() > 2 ? input.size() - 2 : 1) : kernel.size();
    TORCH_CHECK(input.size() > spatial, "expected an input of more than ", spatial, " dimensions, but got ",
                input.size());
    const std::size_t first = input.size() - spatial;
    const Sizes steps = stride.empty() ? kernel : stride;
    Shape out(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(first));
    for (std::size_t i = 0; i < spatial; ++i) {
        const int64_t count = window_count(input[first + i], each(kernel, i), each(steps, i), each(padding, i),
                                           each(dilation, i), ceil_mode);
        TORCH_CHECK(count > 0, "the kernel ", kernel, " is larger than the padded input ", input.slice(first));
        out.push_back(count);
    }
    return out;
}

Shape matmul(Sizes first, Sizes second) {
    TORCH_CHECK(!first.empty() && !second.empty(), "both arguments to matmul need to be at least 1D");
    const Sizes outer_first = first.slice(0, first.size() < 2 ? 0 : first.size() - 2);
    const Sizes outer_second = second.slice(0, second.size() < 2 ? 0 : second.size() - 2);
    Shape out = broadcast(outer_first, outer_second);
    if (first.size() >= 2) {
        out.push_back(first[first.size() - 2]);
    }
    if (second.size() >= 2) {
        out.push_back(second[second.size() - 1]);
    }
    return out;
}

Shape linear(Sizes input, Sizes weight) {
    TORCH_CHECK(!input.empty(), "linear needs an input of at least 1 dimension");
    Shape out(input.begin(), input.end() - 1);
    if (weight.size() == 2) {
        out.push_back(weight[0]);
    }
    return out;
}

Shape embedding(Sizes weight, Sizes indices) {
    TORCH_CHECK(weight.size() == 2, "'weight' must be 2-D");
    Shape out(indices.begin(), indices.end());
    out.push_back(weight[1]);
    return out;
}

Shape embedding_grad(Sizes grad, int64_t num_weights) {
    TORCH_CHECK(!grad.empty(), "the gradient of an embedding has at least 1 dimension");
    return {num_weights, grad.back()};
}

Shape index_select(Sizes input, int64_t dim, Sizes index) {
    TORCH_CHECK_INDEX(index.size() <= 1, "index_select(): Index is supposed to be a vector");
    Shape out(input.begin(), input.end());
    const int64_t at = c10::maybe_wrap_dim(dim, static_cast<int64_t>(input.size()));
    if (!out.empty()) {
        out[static_cast<std::size_t>(at)] = index.empty() ? 1 : index[0];
    }
    return out;
}

Shape repeated(Sizes input, Sizes repeats) {
    TORCH_CHECK(repeats.size() >= input.size(),
                "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
    Shape out(repeats.begin(), repeats.end());
    const std::size_t first = repeats.size() - input.size();
    for (std::size_t i = 0; i < input.size(); ++i) {
        out[first + i] *= input[i];
    }
    return out;
}

Shape stack(const at::ITensorListRef& tensors, int64_t dim) {
    TORCH_CHECK(tensors.size() != 0, "stack expects a non-empty TensorList");
    const at::Tensor& first = *tensors.begin();
    for (const at::Tensor& tensor : tensors) {
        TORCH_CHECK(tensor.sizes() == first.sizes(), "stack expects each tensor to be equal size, but got ",
                    first.sizes(), " at entry 0 and ", tensor.sizes(), " in another");
    }
    Shape out(first.sizes().begin(), first.sizes().end());
    const int64_t at = c10::maybe_wrap_dim(dim, first.dim() + 1);
    out.insert(out.begin() + at, static_cast<int64_t>(tensors.size()));
    return out;
}

Shape cat(const at::ITensorListRef& tensors, int64_t dim) {
    TORCH_CHECK(tensors.size() != 0, "torch.cat(): expected a non-empty list of Tensors");
    Shape out;
    std::size_t at = 0;
    int64_t length = 0;
    for (const at::Tensor& tensor : tensors) {
        // An empty vector is skipped, whatever the others' rank is.
        if (tensor.dim() == 1 && tensor.size(0) == 0) {
            continue;
        }
        out.assign(tensor.sizes().begin(), tensor.sizes().end());
        at = static_cast<std::size_t>(c10::maybe_wrap_dim(dim, tensor.dim()));
        length += tensor.size(static_cast<int64_t>(at));
    }
    if (out.empty()) {
        return {0};
    }
    out[at] = length;
    return out;
}

Shape arange(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step) {
    if (start.isIntegral(true) && end.isIntegral(true) && step.isIntegral(true)) {
        const int64_t by = step.toLong();
        TORCH_CHECK(by != 0, "step must be nonzero");
        const int64_t span = end.toLong() - start.toLong();
        TORCH_CHECK((by > 0) == (span > 0) || span == 0, "upper bound and lower bound inconsistent with step sign");
        return {(span + by - (by > 0 ? 1 : -1)) / by};
    }
    const double by = step.toDouble();
    TORCH_CHECK(by != 0, "step must be nonzero");
    const double span = end.toDouble() - start.toDouble();
    TORCH_CHECK(std::isfinite(span), "unsupported range: ", start.toDouble(), " -> ", end.toDouble());
    TORCH_CHECK((by > 0) == (span > 0) || span == 0, "upper bound and lower bound inconsistent with step sign");
    return {static_cast<int64_t>(std::ceil(span / by))};
}

}  // namespace dipu::shape
