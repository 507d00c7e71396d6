// The bookkeeping around a language model: tokens in and out, lengths, padding, and when to stop.
#include <ATen/TensorOperators.h>
#include <ATen/ops/index_select.h>
#include <diopi/functions_lmdeploy.h>

#include <algorithm>

#include "aten/call.h"
#include "functions/attend.h"
#include "functions/words.h"

namespace impl::torch {

using namespace diopi::aten;

namespace {

at::Tensor looked_up(diopiConstTensorHandle_t table, const at::Tensor& ids) {
    return at::index_select(tensor(table), 0, ids.to(at::kLong));
}

}  // namespace

diopiError_t diopiInputIdsEmbeddingLookupPosEncoding(diopiContextHandle_t, diopiTensorHandle_t from_tensor,
                                                     diopiConstTensorHandle_t input_ids,
                                                     diopiConstTensorHandle_t embedding_table,
                                                     const int64_t input_lengths, const int64_t) {
    return guarded(
        [&] { write(from_tensor, looked_up(embedding_table, tensor(input_ids).slice(0, 0, input_lengths))); });
}

diopiError_t diopiEmbeddingLookupPosEncoding(diopiContextHandle_t, diopiTensorHandle_t from_tensor,
                                             diopiConstTensorHandle_t embedding_table, diopiConstTensorHandle_t all_ids,
                                             const int64_t batch_size, const int64_t, const int64_t step) {
    return guarded(
        [&] { write(from_tensor, looked_up(embedding_table, tensor(all_ids)[step].slice(0, 0, batch_size))); });
}

diopiError_t diopiTransposeAxis01(diopiContextHandle_t, diopiTensorHandle_t output, diopiConstTensorHandle_t input,
                                  const int64_t dim0, const int64_t dim1, const int64_t dim2) {
    return guarded([&] { write(output, tensor(input).reshape({dim0, dim1, dim2}).transpose(0, 1)); });
}

diopiError_t diopiPlusScalarInp(diopiContextHandle_t, diopiTensorHandle_t inoutput, const int64_t val,
                                const int64_t size) {
    return guarded([&] { tensor(inoutput).slice(0, 0, size).add_(val); });
}

diopiError_t diopiUpdatePaddingCount(diopiContextHandle_t, diopiTensorHandle_t total_padding_count,
                                     diopiConstTensorHandle_t input_lengths, int64_t max_input_length,
                                     int64_t batch_size) {
    return guarded(
        [&] { write(total_padding_count, tensor(input_lengths).slice(0, 0, batch_size).neg() + max_input_length); });
}

diopiError_t diopiGatherOutput(diopiContextHandle_t, diopiTensorHandle_t output_ids, diopiConstTensorHandle_t ids,
                               diopiConstTensorHandle_t context_length, int64_t max_context_len, int64_t max_gen_step,
                               int64_t max_output_len, int64_t batch_size) {
    return guarded([&] {
        const Ends contexts = ends_of(context_length);
        for (int64_t b = 0; b < batch_size; ++b) {
            const at::Tensor row = tensor(output_ids)[b];
            const at::Tensor column = tensor(ids).select(1, b).slice(0, 0, max_gen_step);
            const int64_t context = std::min(contexts[static_cast<size_t>(b)], column.size(0));
            const at::Tensor answer = column.slice(0, max_context_len);
            const int64_t end = std::min(max_output_len, context + answer.size(0));
            row.slice(0, 0, std::min(context, end)).copy_(column.slice(0, 0, std::min(context, end)));
            if (end > context) row.slice(0, context, end).copy_(answer.slice(0, 0, end - context));
        }
    });
}

diopiError_t diopiStopWordsCriterion(diopiContextHandle_t, diopiConstTensorHandle_t output_ids,
                                     diopiConstTensorHandle_t stop_words, diopiTensorHandle_t finished,
                                     int64_t id_offset, int64_t, int64_t batch_size, int64_t step) {
    return guarded([&] {
        at::Tensor done = tensor(finished);
        for (int64_t b = 0; b < batch_size; ++b) {
            const Tokens tokens = tokens_of(tensor(output_ids).select(1, id_offset + b).slice(0, 0, step + 1));
            for (const Tokens& word : words_of(tensor(stop_words)[b])) {
                if (ends_with(tokens, word)) done[b].fill_(true);
            }
        }
    });
}

diopiError_t diopiLengthCriterion(diopiContextHandle_t, diopiTensorHandle_t finished, diopiTensorHandle_t should_stop,
                                  diopiTensorHandle_t finished_sum, diopiConstTensorHandle_t sequence_limit_length,
                                  int64_t batch_size, int64_t step) {
    return guarded([&] {
        at::Tensor done = tensor(finished).slice(0, 0, batch_size);
        done.logical_or_(tensor(sequence_limit_length).slice(0, 0, batch_size).le(step));
        write(finished_sum, done.sum().reshape({1}));
        write(should_stop, done.all().reshape({1}));
    });
}

}  // namespace impl::torch
