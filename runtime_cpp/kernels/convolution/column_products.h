// Convolution as matrix products: what each window sees is laid out as a row of a matrix.
#pragma once

#include <diopi/diopirt.h>

#include <algorithm>
#include <cstdint>

#include "convolution_shape.h"
#include "core/tensor.h"
#include "core/workspace.h"

namespace diopi::kernels {

// One group of some images, of which column_products works on one after the other.
struct Part {
    int64_t group;
    int64_t first_image;
    int64_t images;
    int64_t first_channel;  // of the group
    int64_t windows;
};

// `Columns` fills and reads the matrix of windows, [windows of the images, taps, channels of the group]:
//     bool direct(shape)                                            the pixels themselves are that matrix
//     void unroll(stream, shape, part, input, columns)              columns = what the windows see
//     void roll_up(stream, shape, part, columns, grad_input, adds)  its transpose
// where `input` and `grad_input` begin with the part's first image. All tensors are dense in NDHWC memory.
template <class T, class Columns>
class ColumnProducts {
public:
    ColumnProducts(Context ctx, const ConvolutionShape& shape, const Columns& columns)
        : ctx_(ctx),
          stream_(stream_of(ctx)),
          shape_(shape),
          unrolling_(columns),
          direct_(columns.direct(shape)) {}

    // `beta` is one where the output holds a bias already, else zero.
    void forward(T* output, const T* input, const T* weight, double beta) {
        each_part(input, [&](const Part& part, const T* columns, int64_t column_stride) {
            gemm(false, true, part.windows, shape_.group_filters(), shape_.row_length(), 1, columns, column_stride,
                 filters_of(weight, part), shape_.row_length(), beta, output_of(output, part), shape_.filters);
        });
    }

    void backward_weight(T* grad_weight, const T* grad_output, const T* input, double scale = 1) {
        each_part(input, [&](const Part& part, const T* columns, int64_t column_stride) {
            gemm(true, false, shape_.group_filters(), shape_.row_length(), part.windows, scale,
                 output_of(grad_output, part), shape_.filters, columns, column_stride, part.first_image == 0 ? 0 : 1,
                 filters_of(grad_weight, part), shape_.row_length());
        });
    }

    void backward_input(T* grad_input, const T* grad_output, const T* weight, double beta) {
        each_piece([&](const Part& part) {
            T* target = grad_input + part.first_image * shape_.input_pixels() * shape_.channels;
            T* columns = direct_ ? target + part.first_channel : matrix();
            gemm(false, false, part.windows, shape_.row_length(), shape_.group_filters(), 1,
                 output_of(grad_output, part), shape_.filters, filters_of(weight, part), shape_.row_length(),
                 direct_ ? beta : 0, columns, direct_ ? shape_.channels : shape_.row_length());
            if (!direct_) unrolling_.roll_up(stream_, shape_, part, columns, target, beta != 0);
        });
    }

private:
    T* matrix() {
        if (matrix_ == nullptr)
            matrix_ = workspace_of<T>(ctx_, shape_.images_at_once() * shape_.output_pixels() * shape_.row_length());
        return matrix_;
    }

    template <class Pointer>
    Pointer output_of(Pointer output, const Part& part) const {
        return output + part.first_image * shape_.output_pixels() * shape_.filters +
               part.group * shape_.group_filters();
    }

    template <class Pointer>
    Pointer filters_of(Pointer weight, const Part& part) const {
        return weight + part.group * shape_.group_filters() * shape_.row_length();
    }

    template <class F>
    void each_piece(F&& f) {
        const int64_t step = direct_ ? shape_.batch : shape_.images_at_once();
        for (int64_t first = 0; first < shape_.batch; first += step) {
            const int64_t images = std::min(step, shape_.batch - first);
            for (int64_t group = 0; group < shape_.groups; ++group)
                f(Part{group, first, images, group * shape_.group_channels(), images * shape_.output_pixels()});
        }
    }

    // Calls f(part, columns, the stride of their rows).
    template <class F>
    void each_part(const T* input, F&& f) {
        each_piece([&](const Part& part) {
            const T* images = input + part.first_image * shape_.input_pixels() * shape_.channels;
            if (direct_) return f(part, images + part.first_channel, shape_.channels);
            unrolling_.unroll(stream_, shape_, part, images, matrix());
            f(part, matrix(), shape_.row_length());
        });
    }

    void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, double alpha, const T* a, int64_t lda,
              const T* b, int64_t ldb, double beta, T* c, int64_t ldc) {
        check(launch::gemm(stream_, dtype_of<T>, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, 1, 0,
                           0, 0),
              "the matrix library refused a product");
    }

    Context ctx_;
    diopiStreamHandle_t stream_;
    ConvolutionShape shape_;
    Columns unrolling_;
    bool direct_;
    T* matrix_ = nullptr;  // made at its first use
};

}  // namespace diopi::kernels
