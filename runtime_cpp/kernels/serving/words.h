// Words of tokens, as language models list those that are banned or that end a text.
#pragma once

#include "space/element.h"

namespace diopi::kernels {

// The words of a sequence, and its text so far: a column of `texts`, [position, sequence].
struct Words {
    TensorView lists;  // [sequence, 2, length]: the tokens of all words; the ends of the words, filled up with -1
    TensorView texts;
    int64_t written;  // tokens of each text
    int64_t first;    // the column of sequence 0
    int64_t sequence = 0;

    DIOPI_HD Words of(int64_t b) const { return {lists, texts, written, first, b}; }

    DIOPI_HD int64_t token(int64_t i) const { return number_at<int64_t>(lists, sequence, 0, i); }

    // Calls f(begin, end) for each word: its tokens are those from begin up to end.
    template <class F>
    DIOPI_HD void for_each_word(F&& f) const {
        int64_t begin = 0;
        for (int64_t i = 0; i < lists.sizes[2]; ++i) {
            const auto end = number_at<int64_t>(lists, sequence, 1, i);
            if (end < 0) continue;
            if (begin < end && end <= lists.sizes[2]) f(begin, end);
            begin = end;
        }
    }

    // True when the text ends with the tokens from begin up to end.
    DIOPI_HD bool stand_last(int64_t begin, int64_t end) const {
        const int64_t from = written - (end - begin);
        if (from < 0) return false;
        for (int64_t k = begin; k < end; ++k) {
            if (number_at<int64_t>(texts, from + k - begin, first + sequence) != token(k)) return false;
        }
        return true;
    }
};

// `lists` has three dimensions; texts are those of the columns from `first` on.
inline Words words_of(ConstTensor output_ids, const TensorView& lists, int64_t first, int64_t batch, int64_t written) {
    const TensorView texts = required_view(output_ids, "output_ids");
    require_storable(texts);
    require(texts.ndim == 2 && first >= 0 && first + batch <= texts.sizes[1] && written <= texts.sizes[0],
            "'output_ids' does not have %lld tokens of %lld sequences", written, first + batch);
    return {lists, texts, written, first};
}

}  // namespace diopi::kernels
