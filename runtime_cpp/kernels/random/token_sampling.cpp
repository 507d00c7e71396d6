// The next token of each sequence, drawn from the likeliest ones, and what settles how many these are.
#include <diopi/diopirt.h>

#include "choose.h"
#include "core/team.h"
#include "core/view.h"
#include "core/workspace.h"
#include "math/math.h"
#include "math/philox.h"
#include "sorting/sorting.h"
#include "space/element.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

constexpr int64_t kLargestK = 1024;
constexpr int64_t kShortList = 32;  // so many tokens are kept by insertion
constexpr int64_t kAtOnce = 32;     // sequences of one launch, whose streams travel as its arguments

// What sequence `b` has in a vector; functions of their own, as each is a switch over the dtypes.
template <class To>
DIOPI_HD_OUTLINED To read(const TensorView& vector, int64_t b) {
    return number_at<To>(vector, b);
}
template <class From>
DIOPI_HD_OUTLINED void write(const TensorView& vector, From value, int64_t b) {
    if (vector.defined()) set_number(vector, value, b);
}

// The state of a batch; what is not wanted is undefined.
struct Batch {
    TensorView row;  // of the tokens that are written
    TensorView logits;
    TensorView top_k, top_p;
    TensorView end_ids, finished, lengths, skipped, cum_log_probs, output_log_probs;

    DIOPI_HD static bool is_set(const TensorView& flags, int64_t b) { return flags.defined() && read<bool>(flags, b); }

    DIOPI_HD void put(int64_t b, int64_t token, double log_prob, double log_prob_among_kept) const {
        write(row, token, b);
        if (cum_log_probs.defined()) write(cum_log_probs, read<double>(cum_log_probs, b) + log_prob, b);
        write(output_log_probs, log_prob_among_kept, b);
        if (lengths.defined()) write(lengths, read<int64_t>(lengths, b) + 1, b);
        if (finished.defined()) write(finished, token == read<int64_t>(end_ids, b), b);
    }
};

template <class T>
struct DrawTask {
    Batch batch;
    int64_t first;
    Entry<T>* entries;  // room for a vocabulary of each sequence of the launch, sorted already where teams draw
    Entry<T>* spare;
    RandomStream streams[kAtOnce];

    DIOPI_HD void operator()(int64_t i, const Team& team = {}) const {
        const int64_t b = first + i, vocab = batch.logits.sizes[1];
        if (Batch::is_set(batch.skipped, b)) return;
        if (Batch::is_set(batch.finished, b)) {
            if (team.rank() == 0) write(batch.row, read<int64_t>(batch.end_ids, b), b);
            return;
        }
        int64_t kept = batch.top_k.defined() ? read<int64_t>(batch.top_k, b) : vocab;
        kept = kept < 1 ? 1 : kept > vocab ? vocab : kept;
        const Entry<T>* likeliest = sorted(b, kept, entries + i * vocab, spare + i * vocab);
        const double greatest = cast<double>(likeliest[0].value);
        const auto share = [&](int64_t c) { return math::exp(cast<double>(likeliest[c].value) - greatest); };
        double all = 0, among_kept = 0;
        for (int64_t v = team.rank(); v < vocab; v += team.size())
            all += math::exp(cast<double>(element<T>(batch.logits, b, v)) - greatest);
        for (int64_t c = team.rank(); c < kept; c += team.size()) among_kept += share(c);
        all = team.reduce(all, Plus{});
        among_kept = team.reduce(among_kept, Plus{});
        if (team.rank() != 0) return;
        const double mark = streams[i].uniform(0) * read<double>(batch.top_p, b) * among_kept;
        const int64_t drawn = choose(kept, mark, share);
        const double log_share = cast<double>(likeliest[drawn].value) - greatest;
        batch.put(b, likeliest[drawn].place, log_share - math::log(all), log_share - math::log(among_kept));
    }

    // The likeliest tokens of a sequence, at least `kept` of them.
    DIOPI_HD const Entry<T>* sorted(int64_t b, int64_t kept, Entry<T>* line, Entry<T>* other) const {
        if (!Team::kAlone) return line;
        const int64_t vocab = batch.logits.sizes[1];
        const Order<T> order{true};
        if (kept <= kShortList) {
            keep_first([&](int64_t v) { return element<T>(batch.logits, b, v); }, vocab, line, kept, order);
            return line;
        }
        for (int64_t v = 0; v < vocab; ++v) line[v] = Entry<T>{element<T>(batch.logits, b, v), v};
        return merge_sort(line, other, vocab, order);
    }
};

template <class T>
struct Tokens {
    TensorView logits;
    int64_t first;  // sequence
    DIOPI_HD Entry<T> entry(int64_t i) const {
        const int64_t b = i / logits.sizes[1], v = i - b * logits.sizes[1];
        return {element<T>(logits, first + b, v), v};
    }
    DIOPI_HD T operator()(int64_t i) const { return entry(i).value; }
};

template <class T>
struct ListTokensTask {
    Tokens<T> tokens;
    SortedPlaces sorted;
    Entry<T>* entries;
    DIOPI_HD void operator()(int64_t i) const { entries[i] = tokens.entry(sorted[i]); }
};

void draw(Context ctx, const Batch& batch, Generator* generators) {
    require(generators != nullptr, "a draw needs a generator for each sequence");
    const int64_t count = batch.logits.sizes[0], vocab = batch.logits.sizes[1];
    require(count == 0 || vocab > 0, "there are no tokens to draw from");
    dispatch<Float>(batch.logits.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        const int64_t room = (count < kAtOnce ? count : kAtOnce) * vocab;
        auto* const entries = workspace_of<Entry<T>>(ctx, room);
        auto* const spare = Team::kAlone ? workspace_of<Entry<T>>(ctx, room) : nullptr;
        for (int64_t first = 0; first < count; first += kAtOnce) {
            const int64_t sequences = count - first < kAtOnce ? count - first : kAtOnce;
            DrawTask<T> task{batch, first, entries, spare, {}};
            for (int64_t i = 0; i < sequences; ++i) task.streams[i] = next_stream(generators[first + i]);
            if constexpr (!Team::kAlone) {
                const Tokens<T> tokens{batch.logits, first};
                const SortedPlaces sorted = sorted_places(ctx, sequences, vocab, tokens, true);
                for_each(ctx, sequences * vocab, ListTokensTask<T>{tokens, sorted, entries});
            }
            for_each_by_teams(ctx, sequences, vocab, task);
        }
    });
}

TensorView optional_view(ConstTensor handle, const char* name, int64_t batch) {
    return handle == nullptr ? undefined_view() : sized_view(handle, name, {batch});
}

Batch batch_of(Tensor output_ids, Tensor logits, const TensorView& top_k, ConstTensor top_p, ConstTensor end_ids,
               Tensor finished, Tensor lengths, ConstTensor skipped, Tensor cum_log_probs, Tensor output_log_probs,
               int64_t step, int64_t batch, int64_t vocab) {
    const TensorView ids = required_view(output_ids, "output_ids");
    require_storable(ids);
    require(ids.ndim == 2 && ids.sizes[1] == batch && step >= 0 && step < ids.sizes[0],
            "'output_ids' has no place for %lld tokens at step %lld", batch, step);
    return {selected(ids, 0, step),
            sized_view(logits, "logits", {batch, vocab}),
            top_k,
            sized_view(top_p, "runtime_top_p", {batch}),
            sized_view(end_ids, "end_ids", {batch}),
            optional_view(finished, "finished", batch),
            optional_view(lengths, "sequence_lengths", batch),
            optional_view(skipped, "skip_decode", batch),
            optional_view(cum_log_probs, "cum_log_probs", batch),
            optional_view(output_log_probs, "output_log_probs", batch)};
}

// A call for the size of a workspace: the kernels take theirs from the context.
bool asks_for_size(int64_t* size) {
    if (size == nullptr || *size >= 0) return false;
    *size = 0;
    return true;
}

// What each sequence brings itself, or the same for all.
struct RuntimeArgs {
    TensorView top_ks, top_ps, skip_decode;
    bool own_k, own_p;
    int64_t common_k;
    double common_p;

    DIOPI_HD int64_t k(int64_t b) const { return own_k ? read<int64_t>(top_ks, b) : common_k; }
    DIOPI_HD double p(int64_t b) const { return own_p ? read<double>(top_ps, b) : common_p; }
    DIOPI_HD void put(int64_t b, int64_t k, double p, bool skip) const {
        write(top_ks, k, b);
        write(top_ps, p, b);
        write(skip_decode, skip, b);
    }
};

RuntimeArgs runtime_args(Tensor top_ks, Tensor top_ps, Tensor skip_decode, int64_t batch, int64_t top_k,
                         int64_t top_ks_size, float top_p, int64_t top_ps_size) {
    return {sized_view(top_ks, "top_ks", {batch}),
            sized_view(top_ps, "top_ps", {batch}),
            sized_view(skip_decode, "skip_decode", {batch}),
            top_ks_size > 0,
            top_ps_size > 0,
            top_k,
            top_p};
}

struct TopKArgsTask {
    RuntimeArgs args;

    DIOPI_HD void operator()(int64_t b) const {
        int64_t k = args.k(b);
        double p = args.p(b);
        if (k == 0 && p == 0) k = 1;
        if (k > 0 && p == 0) p = 1;
        args.put(b, k < kLargestK ? k : kLargestK, math::clamp(p, 0.0, 1.0), k == 0);
    }
};

struct TopPArgsTask {
    RuntimeArgs args;
    TensorView initial_top_p, decays, minima, reset_ids;
    double decay, minimum;
    int64_t reset_id;

    DIOPI_HD void operator()(int64_t b) const {
        const double p = math::clamp(args.p(b), 0.0, 1.0);
        const int64_t k = args.k(b) == 0 && p == 0 ? 1 : args.k(b);
        args.put(b, k, p, k > 0);
        write(initial_top_p, p, b);
        write(decays, decay, b);
        write(minima, minimum, b);
        write(reset_ids, reset_id, b);
    }
};

double share_or(float share, double otherwise) { return share > 0 && share <= 1 ? share : otherwise; }

}  // namespace

diopiError_t diopiTopKSampling(Context ctx, Tensor output_ids, Tensor logits, Tensor, int64_t* workspace_size, int64_t,
                               ConstTensor end_ids, Tensor finished, Tensor sequence_lengths, int64_t step,
                               int64_t batch_size, int64_t vocab_size_padded, ConstTensor runtime_top_k,
                               ConstTensor runtime_top_p, ConstTensor skip_decode, Tensor cum_log_probs,
                               Tensor output_log_probs, Generator* generators) {
    return guarded([&] {
        if (asks_for_size(workspace_size)) return;
        draw(ctx,
             batch_of(output_ids, logits, sized_view(runtime_top_k, "runtime_top_k", {batch_size}), runtime_top_p,
                      end_ids, finished, sequence_lengths, skip_decode, cum_log_probs, output_log_probs, step,
                      batch_size, vocab_size_padded),
             generators);
    });
}

diopiError_t diopiTopPSampling(Context ctx, Tensor output_ids, Tensor logits, Tensor,
                               int64_t* persistent_workspace_size, Tensor, int64_t* workspace_size, int64_t,
                               ConstTensor end_ids, Tensor finished, Tensor sequence_lengths, int64_t step,
                               int64_t batch_size, int64_t vocab_size_padded, Tensor runtime_top_p,
                               ConstTensor skip_decode, Tensor cum_log_probs, Tensor output_log_probs,
                               Generator* generators) {
    return guarded([&] {
        const bool persistent_size = asks_for_size(persistent_workspace_size);
        if (asks_for_size(workspace_size) || persistent_size) return;
        draw(ctx,
             batch_of(output_ids, logits, undefined_view(), runtime_top_p, end_ids, finished, sequence_lengths,
                      skip_decode, cum_log_probs, output_log_probs, step, batch_size, vocab_size_padded),
             generators);
    });
}

diopiError_t diopiSetupTopkRuntimeArgsInp(Context ctx, Tensor top_ks, Tensor top_ps, Tensor skip_decode,
                                          int64_t batch_size, int64_t top_k, int64_t top_ks_size, float top_p,
                                          int64_t top_ps_size) {
    return guarded([&] {
        for_each(ctx, batch_size,
                 TopKArgsTask{
                     runtime_args(top_ks, top_ps, skip_decode, batch_size, top_k, top_ks_size, top_p, top_ps_size)});
    });
}

diopiError_t diopiSetupToppRuntimeArgsInp(Context ctx, Tensor top_ks, Tensor top_ps, Tensor skip_decode,
                                          int64_t batch_size, int64_t top_k, int64_t top_ks_size, float top_p,
                                          int64_t top_ps_size, Tensor initial_top_p_buf, Tensor top_p_decay_buf,
                                          float top_p_decay, Tensor top_p_min_buf, float top_p_min,
                                          Tensor top_p_reset_ids_buf, int64_t top_p_reset_ids) {
    return guarded([&] {
        for_each(
            ctx, batch_size,
            TopPArgsTask{runtime_args(top_ks, top_ps, skip_decode, batch_size, top_k, top_ks_size, top_p, top_ps_size),
                         sized_view(initial_top_p_buf, "initial_top_p_buf", {batch_size}),
                         sized_view(top_p_decay_buf, "top_p_decay_buf", {batch_size}),
                         sized_view(top_p_min_buf, "top_p_min_buf", {batch_size}),
                         sized_view(top_p_reset_ids_buf, "top_p_reset_ids_buf", {batch_size}),
                         share_or(top_p_decay, 1.0), share_or(top_p_min, 0.5), top_p_reset_ids});
    });
}

}  // namespace impl::portable
