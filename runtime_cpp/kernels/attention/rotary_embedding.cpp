// Rotary position embedding: pairs of channels turned by the angle of their position.
#include <diopi/diopirt.h>

#include <initializer_list>

#include "core/view.h"
#include "space/element.h"
#include "space/index.h"
#include "space/runs.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// The halves of the last dimension: even and odd channels when interleaved, else the first and the second half.
struct Halves {
    TensorView first;
    TensorView second;
};

Halves halves_of(const TensorView& tensor, bool interleaved) {
    require(tensor.ndim > 0 && tensor.sizes[tensor.ndim - 1] % 2 == 0,
            "a rotary embedding needs an even number of channels");
    const int last = tensor.ndim - 1;
    const int64_t half = tensor.sizes[last] / 2;
    if (interleaved) return {narrowed(tensor, last, 0, half, 2), narrowed(tensor, last, 1, half, 2)};
    return {narrowed(tensor, last, 0, half), narrowed(tensor, last, half, half)};
}

// out = x * (cos + i sin), or its conjugate. Reads both channels of a pair before it writes them: out may be x.
template <class T>
void rotate(diopiStreamHandle_t stream, const TensorView& out, const TensorView& x, const TensorView& cos,
            const TensorView& sin, bool conj, bool interleaved) {
    using C = ComputeType<T>;
    const Halves to = halves_of(out, interleaved);
    const Halves from = halves_of(x, interleaved);
    const TensorView operands[] = {to.first, to.second, from.first, from.second, cos, sin};
    const Space<6> space = broadcast_space<6>(to.first, operands);
    const C sign = conj ? C(-1) : C(1);
    T* target[] = {to.first.as<T>(), to.second.as<T>()};
    const T* source[] = {from.first.as<T>(), from.second.as<T>(), cos.as<T>(), sin.as<T>()};
    for_each_index(
        stream, space.numel, DIOPI_LAMBDA(int64_t i) {
            const Offsets<6> at = space.offsets(i);
            const C a = cast<C>(source[0][at[2]]), b = cast<C>(source[1][at[3]]);
            const C c = cast<C>(source[2][at[4]]), s = cast<C>(source[3][at[5]]) * sign;
            target[0][at[0]] = cast<T>(a * c - b * s);
            target[1][at[1]] = cast<T>(a * s + b * c);
        });
}

// Turns the heads of `rows` in place, halves of a head as pairs; a token's `dim` channels of cos and sin serve its
// heads.
template <class T>
struct TurnTask {
    using C = ComputeType<T>;

    TensorView rows;
    Space<1> places;
    Space<2> angles;  // cos, sin
    const T* cos;
    const T* sin;
    int64_t dim;
    int64_t heads;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t half = dim / 2;
        const int64_t head = i / half, channel = i % half;
        const int64_t token = head / heads;
        T& first = rows.as<T>()[places.offset(head * dim + channel)];
        T& second = rows.as<T>()[places.offset(head * dim + channel + half)];
        const Offsets<2> low = angles.offsets(token * dim + channel);
        const Offsets<2> high = angles.offsets(token * dim + channel + half);
        const C a = cast<C>(first), b = cast<C>(second);
        first = cast<T>(a * cast<C>(cos[low[0]]) - b * cast<C>(sin[low[1]]));
        second = cast<T>(b * cast<C>(cos[high[0]]) + a * cast<C>(sin[high[1]]));
    }
};

void turn_heads(Context ctx, const TensorView& rows, const TensorView& cos, const TensorView& sin, int64_t dim) {
    const int64_t tokens = cos.numel / dim;
    require(cos.numel == tokens * dim && (tokens == 0 ? rows.numel == 0 : rows.numel % (tokens * dim) == 0),
            "'cos' and 'sin' give %lld channels of each token", dim);
    if (rows.numel == 0) return;
    const TensorView angles[] = {cos, sin};
    const Space<2> space = broadcast_space<2>(cos, angles);
    dispatch<Float>(rows.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        for_each(ctx, rows.numel / 2,
                 TurnTask<T>{rows, space_of(rows), space, cos.as<T>(), sin.as<T>(), dim, rows.numel / dim / tokens});
    });
}

}  // namespace

diopiError_t diopiRotaryEmbedding(Context ctx, Tensor out, ConstTensor x, ConstTensor cos, ConstTensor sin,
                                  const bool conj, const bool interleaved) {
    return guarded([&] {
        const TensorView result = required_view(out, "out"), input = required_view(x, "x");
        require_same_sizes(result, input, "out", "x");
        for (const TensorView& operand : {input, required_view(cos, "cos"), required_view(sin, "sin")})
            require_dtype(operand, result.dtype);
        dispatch<Float>(result.dtype, [&](auto type) {
            rotate<typename decltype(type)::type>(stream_of(ctx), result, input, view(cos), view(sin), conj,
                                                  interleaved);
        });
    });
}

diopiError_t diopiRotaryEmbeddingV2(Context ctx, Tensor query, Tensor key, ConstTensor cos, ConstTensor sin,
                                    int64_t dim) {
    return guarded([&] {
        const TensorView cosines = required_view(cos, "cos"), sines = required_view(sin, "sin");
        require(dim > 0 && dim % 2 == 0, "a rotary embedding needs an even number of channels");
        require_same_sizes(cosines, sines, "cos", "sin");
        for (const TensorView& rows : {required_view(query, "query"), required_view(key, "key")}) {
            for (const TensorView& operand : {cosines, sines}) require_dtype(operand, rows.dtype);
            turn_heads(ctx, rows, cosines, sines, dim);
        }
    });
}

}  // namespace impl::portable
