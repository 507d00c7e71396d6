// Logits of the next token made less likely, or impossible, before one is drawn.
#include <diopi/diopirt.h>

#include <limits>

#include "core/same_value.h"
#include "core/view.h"
#include "core/workspace.h"
#include "math/math.h"
#include "space/element.h"
#include "words.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

constexpr double kTemperatureFloor = 1e-6;
enum PenaltyType : int64_t { kNoPenalty, kAdditive, kMultiplicative };

double lowest(diopiDtype_t dtype) {
    switch (dtype) {
        case diopi_dtype_float16: return -65504.0;
        case diopi_dtype_bfloat16: return -0x1.FEp127;
        case diopi_dtype_float32: return std::numeric_limits<float>::lowest();
        default: return std::numeric_limits<double>::lowest();
    }
}

TensorView logits_view(Tensor handle, int64_t batch, int64_t vocab) {
    const TensorView logits = required_view(handle, "logits");
    if (!is_float_dtype(logits.dtype)) fail_dtype(logits.dtype);
    require(logits.ndim == 2 && logits.sizes[0] == batch && vocab <= logits.sizes[1],
            "'logits' does not have %lld sequences of %lld tokens", batch, vocab);
    return logits;
}

struct TemperatureTask {
    TensorView logits, bias, temperatures;
    int64_t vocab;
    double least;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t b = i / logits.sizes[1], v = i % logits.sizes[1];
        if (v >= vocab) return set_number(logits, least, b, v);
        auto value = number_at<double>(logits, b, v);
        if (bias.defined()) value += number_at<double>(bias, v);
        set_number(logits, value / (number_at<double>(temperatures, b) + kTemperatureFloor), b, v);
    }
};

struct Repetition {
    TensorView logits, penalties, output_ids, input_lengths;
    int64_t vocab, max_input_length, step, type;
    double* penalized;  // [sequence, position]

    // The token at position i % step of sequence i / step; -1 for padding.
    DIOPI_HD int64_t token(int64_t i) const {
        const int64_t b = i / step, position = i % step;
        const bool padded =
            input_lengths.defined() && position < max_input_length && position >= number_at<int64_t>(input_lengths, b);
        const auto token = number_at<int64_t>(output_ids, position, b);
        return padded || token >= vocab ? -1 : token;
    }
};

// All logits are read before one is changed: a token may be there more than once.
struct PenalizeTask {
    Repetition all;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t token = all.token(i), b = i / all.step;
        if (token < 0) return;
        const auto old = number_at<double>(all.logits, b, token);
        const auto penalty = number_at<double>(all.penalties, b);
        if (all.type == kAdditive) {
            all.penalized[i] = old - penalty;
        } else {
            all.penalized[i] = old < 0 ? old * penalty : old / penalty;
        }
    }
};

struct PutPenalizedTask {
    Repetition all;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t token = all.token(i);
        if (token >= 0) store_same(all.logits, offset_of(all.logits, i / all.step, token), all.penalized[i]);
    }
};

struct BanTask {
    TensorView logits;
    Words words;
    int64_t vocab;

    DIOPI_HD void operator()(int64_t b) const {
        const Words own = words.of(b);
        own.for_each_word([&](int64_t begin, int64_t end) {
            const int64_t last = own.token(end - 1);
            if (last > 0 && last < vocab && own.stand_last(begin, end - 1))
                set_number(logits, -math::infinity<float>, b, last);
        });
    }
};

}  // namespace

diopiError_t diopiBatchApplyTemperaturePenaltyInp(Context ctx, Tensor logits, ConstTensor bias,
                                                  ConstTensor temperatures, const int64_t batch_size,
                                                  const int64_t vocab_size, const int64_t vocab_size_padd) {
    return guarded([&] {
        const TensorView target = logits_view(logits, batch_size, vocab_size_padd), shift = view(bias);
        require(!shift.defined() || (shift.ndim == 1 && shift.numel >= vocab_size), "'bias' is shorter than the words");
        if (shift.defined()) require_storable(shift);
        for_each(ctx, target.numel,
                 TemperatureTask{target, shift, sized_view(temperatures, "temperatures", {batch_size}), vocab_size,
                                 lowest(target.dtype)});
    });
}

diopiError_t diopiBatchApplyRepetitionPenaltyInp(Context ctx, Tensor logits, ConstTensor penalties,
                                                 ConstTensor output_ids, const int64_t batch_size,
                                                 const int64_t vocab_size, ConstTensor input_lengths,
                                                 const int64_t max_input_length, const int64_t step,
                                                 const int64_t penalty_type) {
    return guarded([&] {
        require(penalty_type >= kNoPenalty && penalty_type <= kMultiplicative, "there is no penalty of type %lld",
                penalty_type);
        const TensorView target = logits_view(logits, batch_size, vocab_size);
        const TensorView ids = required_view(output_ids, "output_ids");
        require_storable(ids);
        require(ids.ndim == 2 && ids.sizes[1] == batch_size && step <= ids.sizes[0],
                "'output_ids' does not have %lld tokens of %lld sequences", step, batch_size);
        const TensorView lengths =
            input_lengths == nullptr ? undefined_view() : sized_view(input_lengths, "input_lengths", {batch_size});
        if (penalty_type == kNoPenalty || step <= 0) return;
        const Repetition all{target,
                             sized_view(penalties, "penalties", {batch_size}),
                             ids,
                             lengths,
                             vocab_size,
                             max_input_length,
                             step,
                             penalty_type,
                             workspace_of<double>(ctx, batch_size * step)};
        for_each(ctx, batch_size * step, PenalizeTask{all});
        for_each(ctx, batch_size * step, PutPenalizedTask{all});
    });
}

diopiError_t diopiBanBadWordsInp(Context ctx, Tensor logits, ConstTensor output_ids, ConstTensor bad_words,
                                 int64_t id_offset, int64_t bad_words_len, bool share_words, int64_t batch_size,
                                 int64_t vocab_size, int64_t step) {
    return guarded([&] {
        const int64_t sizes[] = {batch_size, 2, bad_words_len};
        const TensorView lists = share_words ? sized_view(bad_words, "bad_words", {2, bad_words_len})
                                             : sized_view(bad_words, "bad_words", {batch_size, 2, bad_words_len});
        const Words words = words_of(output_ids, expanded(lists, sizes, 3), id_offset, batch_size, step);
        for_each(ctx, batch_size, BanTask{logits_view(logits, batch_size, vocab_size), words, vocab_size});
    });
}

}  // namespace impl::portable
