// A language model at work, around its attention: penalties of tokens, the cache of keys and values, and a product of
// matrices whose results all processes share.
#include <diopi/diopirt.h>

#include <initializer_list>

#include "attention/sequences.h"
#include "copy/copy.h"
#include "copy/slices.h"
#include "linear_algebra/matrix.h"
#include "space/bounds.h"
#include "space/element.h"
#include "space/index.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// What is taken off a logit. Each list is along the tokens, or has one entry per sequence.
struct Penalties {
    TensorView presence;
    TensorView frequency;
    TensorView counts;

    template <class T>
    DIOPI_HD ComputeType<T> of(int64_t at, int64_t token) const {
        using C = ComputeType<T>;
        const C frequency_at = cast<C>(element<T>(frequency, at));
        const C presence_at = cast<C>(element<T>(presence, at));
        return frequency_at * number_at<C>(counts, token) + presence_at;
    }
};

template <class T>
struct PenaltyTask {
    TensorView logits;
    Penalties penalties;
    TensorView ids;
    Sequences sequences;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t sequence = i / sequences.longest;
        const Range tokens = sequences.span(sequence);
        const int64_t token = tokens.begin + i % sequences.longest;
        if (token >= tokens.end) return;
        const int64_t id = number_at<int64_t>(ids, token);
        T& logit = element<T>(logits, sequence, id);
        logit = cast<T>(cast<ComputeType<T>>(logit) - penalties.of<T>(sequence, token));
    }
};

template <class T>
struct RepeatPenaltyTask {
    using C = ComputeType<T>;

    TensorView logits;
    Space<1> places;
    Penalties penalties;
    TensorView repetition;
    TensorView ids;

    DIOPI_HD void operator()(int64_t token) const {
        T& logit = logits.as<T>()[places.offset(number_at<int64_t>(ids, token))];
        const C old = cast<C>(logit), factor = cast<C>(element<T>(repetition, token));
        logit = cast<T>((old > C(0) ? old / factor : old * factor) - penalties.of<T>(token, token));
    }
};

Penalties penalties_of(ConstTensor presence, ConstTensor frequency, ConstTensor counts, const TensorView& logits,
                       int64_t count, int64_t tokens) {
    const Penalties found{required_view(presence, "presence_penalty"), required_view(frequency, "frequency_penalty"),
                          required_view(counts, "p_token_counts")};
    for (const TensorView* penalty : {&found.presence, &found.frequency}) {
        if (penalty->dtype != logits.dtype) fail_dtype(penalty->dtype);
        require(penalty->ndim == 1 && penalty->sizes[0] == count, "expected a list of %lld penalties", count);
    }
    require_list(found.counts, "p_token_counts");
    require(found.counts.numel == tokens, "there are as many counts as tokens");
    return found;
}

TensorView token_ids(Context ctx, ConstTensor handle, int64_t size) {
    const TensorView ids = required_view(handle, "p_token_ids");
    require_list(ids, "p_token_ids");
    require_in_bounds(ctx, ids, size, 0, Negative::refused);
    return ids;
}

}  // namespace

diopiError_t diopiApplyPenalty(Context ctx, Tensor logits, ConstTensor presence_penalty, ConstTensor frequency_penalty,
                               ConstTensor p_token_ids, ConstTensor p_token_counts, ConstTensor p_cumsum_seq_len,
                               int p_max_len_in_batch) {
    return guarded([&] {
        const TensorView x = required_view(logits, "logits");
        const TensorView ends = required_view(p_cumsum_seq_len, "p_cumsum_seq_len");
        require(x.ndim == 2, "'logits' is (sequence, token), and has %d dimensions", x.ndim);
        require_list(ends, "p_cumsum_seq_len");
        require(ends.numel == x.sizes[0] + 1, "'p_cumsum_seq_len' has an entry more than there are sequences");
        const TensorView ids = token_ids(ctx, p_token_ids, x.sizes[1]);
        const Penalties penalties =
            penalties_of(presence_penalty, frequency_penalty, p_token_counts, x, x.sizes[0], ids.numel);
        const Sequences sequences = sequences_of(ctx, x.sizes[0], p_max_len_in_batch, ids.numel, SpansByEnds{ends});
        for_each_typed<Float, PenaltyTask>(ctx, x.dtype, sequences.count * sequences.longest, x, penalties, ids,
                                           sequences);
    });
}

diopiError_t diopiApplyPenaltyV2(Context ctx, Tensor logits, ConstTensor presence_penalty,
                                 ConstTensor frequency_penalty, ConstTensor repetition_penalty, ConstTensor p_token_ids,
                                 ConstTensor p_token_counts) {
    return guarded([&] {
        const TensorView x = required_view(logits, "logits");
        const TensorView repetition = required_view(repetition_penalty, "repetition_penalty");
        const TensorView ids = token_ids(ctx, p_token_ids, x.numel);
        const Penalties penalties =
            penalties_of(presence_penalty, frequency_penalty, p_token_counts, x, ids.numel, ids.numel);
        require_same_sizes(repetition, ids, "repetition_penalty", "p_token_ids");
        if (repetition.dtype != x.dtype) fail_dtype(repetition.dtype);
        for_each_typed<Float, RepeatPenaltyTask>(ctx, x.dtype, ids.numel, x, space_of(x), penalties, repetition, ids);
    });
}

diopiError_t diopiDestIndexCopyKV(Context ctx, Tensor out, ConstTensor k, ConstTensor dest_loc) {
    return guarded([&] {
        const TensorView cache = required_view(out, "out"), rows = required_view(k, "k");
        const TensorView places = required_view(dest_loc, "dest_loc");
        require(cache.ndim > 0 && rows.ndim == cache.ndim && places.ndim == 1 && rows.sizes[0] == places.numel,
                "'dest_loc' names a row of 'out' for each row of 'k'");
        require(rows.numel == 0 || narrowed(cache, 0, 0, rows.sizes[0]).same_sizes(rows),
                "the rows of 'k' and 'out' differ in shape");
        if (rows.numel > 0)
            put(stream_of(ctx), slices_at(ctx, cache, 0, places, false), converted(ctx, rows, cache.dtype), 0);
    });
}

// What other processes have is beyond a kernel: a vendor with a library of communication has a function of its own.
diopiError_t diopiMatmulAllReduce(Context ctx, Tensor out, ConstTensor x1, ConstTensor x2, ConstTensor bias,
                                  const char* group, const char*, int64_t, int64_t) {
    return guarded([&] {
        if (group != nullptr && *group != '\0')
            fail(diopiNoImplement, "this library has no communication: the group '%s' must be empty", group);
        const TensorView result = required_view(out, "out");
        if (bias != nullptr) copy_elements(ctx, result, view(bias));
        multiply(ctx, result, required_view(x1, "x1"), required_view(x2, "x2"), 1, bias == nullptr ? 0 : 1);
    });
}

}  // namespace impl::portable
