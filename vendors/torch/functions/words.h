// Lists of words of several tokens, as the functions that stop at words and ban words are given them.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace diopi::aten {

using Tokens = std::vector<int64_t>;

inline Tokens tokens_of(const at::Tensor& row) {
    const at::Tensor numbers = row.to(at::kLong).contiguous();
    return {numbers.const_data_ptr<int64_t>(), numbers.const_data_ptr<int64_t>() + numbers.numel()};
}

// Of two rows: the tokens of all words, and where each word ends; -1 fills the rest.
inline std::vector<Tokens> words_of(const at::Tensor& rows) {
    const Tokens tokens = tokens_of(rows[0]);
    std::vector<Tokens> words;
    int64_t begin = 0;
    for (const int64_t end : tokens_of(rows[1])) {
        if (end < 0) break;
        words.emplace_back(tokens.begin() + begin, tokens.begin() + end);
        begin = end;
    }
    return words;
}

inline bool ends_with(const Tokens& tokens, const Tokens& word) {
    return word.size() <= tokens.size() && std::equal(word.rbegin(), word.rend(), tokens.rbegin());
}

}  // namespace diopi::aten
