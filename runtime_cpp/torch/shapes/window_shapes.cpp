// Shape rules of windows that grow their input, come as columns, or are read off a grid.
#include <c10/util/Exception.h>

#include "each.h"
#include "shapes.h"

namespace dipu::shape {

Shape conv_transpose_output(Sizes input, Sizes weight, Sizes stride, Sizes padding, Sizes output_padding,
                            int64_t groups, Sizes dilation) {
    TORCH_CHECK(input.size() == weight.size() && input.size() >= 3,
                "expected input and weight of the same rank, but got ", input, " and ", weight);
    Shape out{input[0], weight[1] * groups};
    for (std::size_t i = 2; i < input.size(); ++i) {
        const int64_t reach = each(dilation, i - 2) * (weight[i] - 1) + 1;
        out.push_back((input[i] - 1) * each(stride, i - 2) - 2 * each(padding, i - 2) + reach +
                      each(output_padding, i - 2));
    }
    return out;
}

Shape columns(Sizes input, Sizes kernel, Sizes dilation, Sizes padding, Sizes stride) {
    TORCH_CHECK(input.size() == 3 || input.size() == 4, "expected planes of 3 or 4 dimensions, but got ", input);
    const std::size_t first = input.size() - 2;
    Shape out(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(first));
    out.back() *= each(kernel, 0) * each(kernel, 1);
    int64_t windows = 1;
    for (std::size_t i = 0; i < 2; ++i) {
        const int64_t reach = each(dilation, i) * (each(kernel, i) - 1) + 1;
        windows *= (input[first + i] + 2 * each(padding, i) - reach) / each(stride, i) + 1;
    }
    out.push_back(windows);
    return out;
}

Shape from_columns(Sizes input, Sizes size, Sizes kernel) {
    TORCH_CHECK(input.size() == 2 || input.size() == 3, "expected columns of 2 or 3 dimensions, but got ", input);
    const int64_t window = each(kernel, 0) * each(kernel, 1);
    Shape out(input.begin(), input.end() - 1);
    TORCH_CHECK(window > 0 && out.back() % window == 0, "expected a multiple of ", window, " rows, but got ",
                out.back());
    out.back() /= window;
    out.append({each(size, 0), each(size, 1)});
    return out;
}

Shape sampled(Sizes input, Sizes grid) {
    TORCH_CHECK(input.size() == grid.size() && grid.size() >= 3, "expected input and grid of the same rank, but got ",
                input, " and ", grid);
    Shape out{input[0], input[1]};
    out.append(grid.begin() + 1, grid.end() - 1);
    return out;
}

}  // namespace dipu::shape
