// Shape rules of views and rearrangements of one tensor.
#include <c10/core/WrapDimMinimal.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "shapes.h"

namespace dipu::shape {
namespace {

std::size_t dimension(Sizes input, int64_t dim) {
    return static_cast<std::size_t>(c10::maybe_wrap_dim(dim, static_cast<int64_t>(input.size())));
}

// A position from the start or, if negative, from the end, cut to the dimension.
int64_t clamped(int64_t position, int64_t length) {
    return std::clamp<int64_t>(position < 0 ? position + length : position, 0, length);
}

}  // namespace

Shape select(Sizes input, int64_t dim) {
    Shape out = sized(input);
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(dimension(input, dim)));
    return out;
}

Shape slice(Sizes input, int64_t dim, int64_t start, int64_t end, int64_t step) {
    TORCH_CHECK(step > 0, "slice step must be positive");
    Shape out = sized(input);
    int64_t& length = out[dimension(input, dim)];
    const int64_t first = clamped(start, length);
    const int64_t last = std::max(first, clamped(end, length));
    length = (last - first + step - 1) / step;
    return out;
}

Shape with_size(Sizes input, int64_t dim, int64_t size) {
    Shape out = sized(input);
    if (!out.empty()) {
        out[dimension(input, dim)] = size;
    }
    return out;
}

Shape permuted(Sizes input, Sizes dims) {
    TORCH_CHECK(dims.size() == input.size(), "permute needs as many dimensions as the tensor has");
    Shape out;
    for (const int64_t dim : dims) {
        out.push_back(input[dimension(input, dim)]);
    }
    return out;
}

Shape transposed(Sizes input, int64_t dim0, int64_t dim1) {
    Shape out = sized(input);
    if (!out.empty()) {
        std::swap(out[dimension(input, dim0)], out[dimension(input, dim1)]);
    }
    return out;
}

Shape padded(Sizes input, Sizes pad) {
    TORCH_CHECK(pad.size() % 2 == 0 && pad.size() / 2 <= input.size(), "padding needs two numbers for each dimension");
    Shape out = sized(input);
    for (std::size_t i = 0; i < pad.size() / 2; ++i) {
        int64_t& length = out[out.size() - 1 - i];
        length += pad[2 * i] + pad[2 * i + 1];
        TORCH_CHECK(length >= 0, "padding leaves a dimension with a negative length");
    }
    return out;
}

Shape unfolded(Sizes input, int64_t dim, int64_t size, int64_t step) {
    TORCH_CHECK(step > 0, "unfold step must be positive");
    Shape out = sized(input);
    if (out.empty()) {
        return {size};
    }
    int64_t& length = out[dimension(input, dim)];
    TORCH_CHECK(size <= length, "unfold windows are longer than the dimension");
    length = (length - size) / step + 1;
    out.push_back(size);
    return out;
}

Shape one_hot(Sizes input, int64_t num_classes) {
    Shape out = sized(input);
    out.push_back(num_classes);
    return out;
}

Shape split(Sizes input, Sizes sizes, int64_t dim) {
    TORCH_CHECK(!sizes.empty(), "split needs at least one length");
    return with_size(input, dim, sizes.front());
}

Shape inverse(Sizes input, const std::optional<int64_t>& dim) {
    return dim.has_value() ? Shape{input[dimension(input, *dim)]} : sized(input);
}

Shape meshgrid(const at::ITensorListRef& sequences) {
    Shape out;
    for (const at::Tensor& sequence : sequences) {
        out.push_back(sequence.numel());
    }
    return out;
}

Shape qr_q(Sizes input, std::string_view mode) {
    TORCH_CHECK(input.size() >= 2, "a QR decomposition needs matrices");
    if (mode == "r") {
        return {0};
    }
    const int64_t rows = input[input.size() - 2];
    return with_size(input, -1, mode == "complete" ? rows : std::min(rows, input.back()));
}

Shape qr_r(Sizes input, std::string_view mode) {
    TORCH_CHECK(input.size() >= 2, "a QR decomposition needs matrices");
    const int64_t rows = input[input.size() - 2];
    return with_size(input, -2, mode == "complete" ? rows : std::min(rows, input.back()));
}

}  // namespace dipu::shape
