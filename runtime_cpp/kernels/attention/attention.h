// Attention: each query mixes the values of the keys that it sees by the softmax of its scores, without a matrix of
// scores in memory. One core for all forms: sequences, caches, masks and layouts are descriptions.
#pragma once

#include <diopi/diopirt.h>

#include "core/tensor.h"
#include "core/view.h"
#include "math/math.h"
#include "math/philox.h"
#include "sequences.h"

namespace diopi::kernels {

constexpr int64_t kUnbounded = int64_t{1} << 40;

// Which weights are dropped, by their position in a matrix (sequence, head, query, key) of the longest sequences.
struct Dropout {
    double probability;  // zero: nothing is drawn
    ReplayedStream stream;
    bool is_private;  // nobody asks which were dropped, so that a library may draw in its own way

    // What a weight that is kept is multiplied by; zero where none is, so that no product with it is NaN.
    DIOPI_HD double kept() const { return probability < 1 ? 1 / (1 - probability) : 0; }
    // What a weight is multiplied by.
    DIOPI_HD double factor(int64_t position) const {
        if (probability == 0) return 1;
        return stream.word(position) >= dropped_words(probability) ? kept() : 0;
    }
};

// What a form keeps of each softmax, (sequence, token, head, copy): the logarithm of its sum, or, where `sum` is
// defined, the greatest score and the sum of the powers from there on.
struct Statistics {
    TensorView log_sum;
    TensorView sum;
    bool by_row;  // a token is a row of q, not a place in its sequence

    DIOPI_HD void store(int64_t at, double greatest, double total) const {
        for (int64_t copy = 0; copy < log_sum.sizes[3]; ++copy) {
            store_as(log_sum, at + copy * log_sum.strides[3], sum.defined() ? greatest : greatest + math::log(total));
            if (sum.defined()) store_as(sum, at + copy * sum.strides[3], total);
        }
    }
};

// q, k, v and out are (sequence, token, head, channel); where sequences lie behind each other there is one of them, and
// its tokens are the rows of all. A head of k and v serves several of q where q has more.
struct Attention {
    TensorView q;
    TensorView k;
    TensorView v;
    TensorView out;
    Sequences queries;
    Sequences keys;
    double scale;
    // The last query stands at the last key. A query at key i sees the keys i - left to i + right.
    int64_t left = kUnbounded;
    int64_t right = kUnbounded;
    TensorView mask = undefined_view();    // (sequence, head, query, key): not zero where a key is hidden
    TensorView slopes = undefined_view();  // (sequence, head): what a step between query and key takes off the score
    Dropout dropout{0, {{0, 0}, nullptr, nullptr}, false};
    Statistics statistics{undefined_view(), undefined_view(), false};

    void set_window(bool causal, int64_t to_left, int64_t to_right) {
        left = to_left < 0 ? kUnbounded : to_left;
        right = causal ? 0 : to_right < 0 ? kUnbounded : to_right;
    }
    void set_mask(TensorView corner);
    void set_slopes(const TensorView& of_heads);
};

struct AttentionGradients {
    Attention attention;  // as it ran, `out` included
    TensorView grad_out;
    TensorView grad_q;  // each may be undefined
    TensorView grad_k;
    TensorView grad_v;
};

// Sequences of one length, (sequence, token, head, channel).
Attention even_attention(const TensorView& out, const TensorView& q, const TensorView& k, const TensorView& v);

// [..., heads * channels] as [..., heads, channels].
TensorView split_heads(const TensorView& rows, int64_t channels);

// (token, head, channel) of sequences that lie behind each other, as (sequence, token, head, channel).
inline TensorView as_rows_of_all(const TensorView& tokens) {
    require(tokens.ndim == 3, "expected (token, head, channel), got %d dimensions", tokens.ndim);
    return with_dim(tokens, 0, 1, 0);
}

// Writes `out` and the statistics of each query; rows of `out` that belong to no sequence stay as they are.
void attend(Context ctx, const Attention& attention);

// Writes the gradients; rows that belong to no sequence get zeros.
void attend_backward(Context ctx, const AttentionGradients& gradients);

// The sum of the products of two rows of channels, in eight interleaved chains.
template <class C, class T>
DIOPI_HD inline C dot(const T* a, int64_t a_stride, const T* b, int64_t b_stride, int64_t count) {
    constexpr int kLanes = 8;
    C lanes[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
        for (int lane = 0; lane < kLanes; ++lane)
            lanes[lane] += cast<C>(a[(i + lane) * a_stride]) * cast<C>(b[(i + lane) * b_stride]);
    }
    for (int lane = 0; i < count; ++i, ++lane) lanes[lane] += cast<C>(a[i * a_stride]) * cast<C>(b[i * b_stride]);
    return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

// A part of the channels of a row, as a sum of rows.
template <class C>
struct Channels {
    static constexpr int64_t kWidth = 128;

    int64_t first;
    int64_t width;
    C sums[kWidth] = {};

    static int64_t parts(int64_t channels) { return channels <= kWidth ? 1 : (channels + kWidth - 1) / kWidth; }

    DIOPI_HD Channels(int64_t part, int64_t channels)
        : first(part * kWidth),
          width(channels - first < kWidth ? channels - first : kWidth) {}

    template <class T>
    DIOPI_HD void add(C factor, const T* row, int64_t stride) {
        const T* values = row + first * stride;
        for (int64_t c = 0; c < width; ++c) sums[c] += factor * cast<C>(values[c * stride]);
    }

    DIOPI_HD void scale(C factor) {
        for (int64_t c = 0; c < width; ++c) sums[c] *= factor;
    }

    template <class T>
    DIOPI_HD void store(T* row, int64_t stride) const {
        for (int64_t c = 0; c < width; ++c) row[(first + c) * stride] = cast<T>(sums[c]);
    }
};

// The sum of the powers of scores that come one by one, as multiples of the greatest so far.
template <class C>
struct RunningSoftmax {
    C greatest = -math::infinity<C>;
    double sum = 0;

    // What all sums so far are to be multiplied by as `score` comes.
    DIOPI_HD C shrink(C score) {
        if (!(score > greatest)) return C(1);
        const C factor = math::exp(greatest - score);
        sum *= static_cast<double>(factor);
        greatest = score;
        return factor;
    }

    // Of the score that has just come.
    DIOPI_HD C weight(C score) {
        const C power = score == -math::infinity<C> ? C(0) : math::exp(score - greatest);
        sum += static_cast<double>(power);
        return power;
    }
};

// Rows, mixed by the softmax of scores.
template <class C>
struct RunningMix {
    Channels<C> channels;
    RunningSoftmax<C> softmax{};
    bool empty = true;

    template <class T>
    DIOPI_HD void add(C score, C factor, const T* row, int64_t stride) {
        empty = false;
        const C shrink = softmax.shrink(score);
        if (shrink != C(1)) channels.scale(shrink);
        channels.add(softmax.weight(score) * factor, row, stride);
    }

    // Zeros where nothing came.
    DIOPI_HD void finish() {
        if (!empty) channels.scale(static_cast<C>(1 / softmax.sum));
    }
};

}  // namespace diopi::kernels
