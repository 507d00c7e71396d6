// What a library says of a failure, as a text that Python and terminals can take.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>

namespace diopi {

constexpr std::size_t kLongestErrorText = 2000;  // bytes

// The length of the UTF-8 character that begins a text which is not empty; 0 where none begins.
inline std::size_t character_length(const unsigned char* text, std::size_t left) {
    const unsigned char first = text[0];
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xC2 && first < 0xE0   ? 2
                               : first >= 0xE0 && first < 0xF0 ? 3
                               : first >= 0xF0 && first < 0xF5 ? 4
                                                               : 0;
    if (length == 0 || length > left) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if (text[i] < 0x80 || text[i] > 0xBF) return 0;
    }
    const bool overlong = (first == 0xE0 && text[1] < 0xA0) || (first == 0xF0 && text[1] < 0x90);
    const bool no_character = (first == 0xED && text[1] > 0x9F) || (first == 0xF4 && text[1] > 0x8F);
    return overlong || no_character ? 0 : length;
}

// The text with a question mark for each byte that is not UTF-8; of a long one the beginning, and how much is left out.
inline std::string error_text(const char* text) {
    const std::size_t size = std::strlen(text);
    const auto* const bytes = reinterpret_cast<const unsigned char*>(text);
    std::string found;
    std::size_t at = 0;
    while (at < size && at < kLongestErrorText) {
        const std::size_t length = character_length(bytes + at, size - at);
        found.append(length == 0 ? "?" : text + at, length == 0 ? 1 : length);
        at += length == 0 ? 1 : length;
    }
    return at == size ? found : found + "... (" + std::to_string(size - at) + " more bytes)";
}

}  // namespace diopi
