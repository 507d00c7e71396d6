// The bookkeeping around a language model: tokens in and out, lengths, padding, and when to stop.
#include <diopi/diopirt.h>

#include "copy/copy.h"
#include "copy/slices.h"
#include "core/view.h"
#include "space/element.h"
#include "space/index.h"
#include "words.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

void look_up(Context ctx, const TensorView& out, const TensorView& table, const TensorView& ids) {
    require(table.ndim == 2 && table.sizes[1] == out.sizes[1], "'embedding_table' does not have rows of %lld channels",
            out.sizes[1]);
    take(stream_of(ctx), out, 0, slices_at(ctx, converted(ctx, table, out.dtype), 0, ids, false));
}

struct AddTask {
    TensorView tensor;
    Space<1> space;
    int64_t value;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t at = space.offset(i);
        store_as(tensor, at, load_as<int64_t>(tensor, at) + value);
    }
};

struct PaddingTask {
    TensorView padding, lengths;
    int64_t longest;

    DIOPI_HD void operator()(int64_t b) const { set_number(padding, longest - number_at<int64_t>(lengths, b), b); }
};

struct GatherTokensTask {
    TensorView out;  // [sequence, position]
    TensorView ids;  // [position, sequence]
    TensorView context_length;
    int64_t max_context;
    int64_t steps;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t b = i / out.sizes[1], j = i % out.sizes[1];
        const auto context = number_at<int64_t>(context_length, b);
        const int64_t step = j < context ? j : j - context + max_context;
        if (step < steps) set_number(out, number_at<int64_t>(ids, step, b), b, j);
    }
};

struct StopWordsTask {
    TensorView finished;
    Words words;

    DIOPI_HD void operator()(int64_t b) const {
        const Words own = words.of(b);
        own.for_each_word([&](int64_t begin, int64_t end) {
            if (own.stand_last(begin, end)) set_number(finished, true, b);
        });
    }
};

struct LengthTask {
    TensorView finished, should_stop, finished_sum, limits;
    int64_t step;

    DIOPI_HD void operator()(int64_t) const {
        int64_t count = 0;
        for (int64_t b = 0; b < finished.numel; ++b) {
            const bool ended = number_at<bool>(finished, b) || step >= number_at<int64_t>(limits, b);
            set_number(finished, ended, b);
            count += ended ? 1 : 0;
        }
        set_number(finished_sum, count, 0);
        set_number(should_stop, count == finished.numel, 0);
    }
};

}  // namespace

diopiError_t diopiInputIdsEmbeddingLookupPosEncoding(Context ctx, Tensor from_tensor, ConstTensor input_ids,
                                                     ConstTensor embedding_table, const int64_t input_lengths,
                                                     const int64_t hidden_units) {
    return guarded([&] {
        look_up(ctx, sized_view(from_tensor, "from_tensor", {input_lengths, hidden_units}),
                required_view(embedding_table, "embedding_table"), sized_view(input_ids, "input_ids", {input_lengths}));
    });
}

diopiError_t diopiEmbeddingLookupPosEncoding(Context ctx, Tensor from_tensor, ConstTensor embedding_table,
                                             ConstTensor all_ids, const int64_t batch_size, const int64_t hidden_units,
                                             const int64_t step) {
    return guarded([&] {
        const TensorView ids = required_view(all_ids, "all_ids");
        require(ids.ndim == 2 && ids.sizes[1] == batch_size && step >= 0 && step < ids.sizes[0],
                "'all_ids' does not have the tokens of %lld sequences at step %lld", batch_size, step);
        look_up(ctx, sized_view(from_tensor, "from_tensor", {batch_size, hidden_units}),
                required_view(embedding_table, "embedding_table"), selected(ids, 0, step));
    });
}

diopiError_t diopiTransposeAxis01(Context ctx, Tensor output, ConstTensor input, const int64_t dim0, const int64_t dim1,
                                  const int64_t dim2) {
    return guarded([&] {
        const TensorView source = required_view(input, "input");
        require_sizes(source, "input", {dim0, dim1, dim2});
        copy_elements(ctx, required_view(output, "output"), transposed(source, 0, 1));
    });
}

diopiError_t diopiPlusScalarInp(Context ctx, Tensor inoutput, const int64_t val, const int64_t size) {
    return guarded([&] {
        const TensorView tensor = required_view(inoutput, "inoutput");
        require_storable(tensor);
        for_each(ctx, size < tensor.numel ? size : tensor.numel, AddTask{tensor, space_of(tensor), val});
    });
}

diopiError_t diopiUpdatePaddingCount(Context ctx, Tensor total_padding_count, ConstTensor input_lengths,
                                     int64_t max_input_length, int64_t batch_size) {
    return guarded([&] {
        for_each(ctx, batch_size,
                 PaddingTask{sized_view(total_padding_count, "total_padding_count", {batch_size}),
                             sized_view(input_lengths, "input_lengths", {batch_size}), max_input_length});
    });
}

diopiError_t diopiGatherOutput(Context ctx, Tensor output_ids, ConstTensor ids, ConstTensor context_length,
                               int64_t max_context_len, int64_t max_gen_step, int64_t max_output_len,
                               int64_t batch_size) {
    return guarded([&] {
        const TensorView out = sized_view(output_ids, "output_ids", {batch_size, max_output_len});
        const TensorView tokens = required_view(ids, "ids");
        require_storable(tokens);
        require(tokens.ndim == 2 && tokens.sizes[1] == batch_size, "'ids' does not have the tokens of %lld sequences",
                batch_size);
        const int64_t steps = max_gen_step < tokens.sizes[0] ? max_gen_step : tokens.sizes[0];
        for_each(ctx, out.numel,
                 GatherTokensTask{out, tokens, sized_view(context_length, "context_length", {batch_size}),
                                  max_context_len, steps});
    });
}

diopiError_t diopiStopWordsCriterion(Context ctx, ConstTensor output_ids, ConstTensor stop_words, Tensor finished,
                                     int64_t id_offset, int64_t stop_words_len, int64_t batch_size, int64_t step) {
    return guarded([&] {
        const Words words = words_of(output_ids, sized_view(stop_words, "stop_words", {batch_size, 2, stop_words_len}),
                                     id_offset, batch_size, step + 1);
        for_each(ctx, batch_size, StopWordsTask{sized_view(finished, "finished", {batch_size}), words});
    });
}

diopiError_t diopiLengthCriterion(Context ctx, Tensor finished, Tensor should_stop, Tensor finished_sum,
                                  ConstTensor sequence_limit_length, int64_t batch_size, int64_t step) {
    return guarded([&] {
        for_each(ctx, 1,
                 LengthTask{sized_view(finished, "finished", {batch_size}), sized_view(should_stop, "should_stop", {1}),
                            sized_view(finished_sum, "finished_sum", {1}),
                            sized_view(sequence_limit_length, "sequence_limit_length", {batch_size}), step});
    });
}

}  // namespace impl::portable
