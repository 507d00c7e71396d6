// What a list of operators matches, for a test without the backend.
#include "interposer/name_patterns.h"
#include "settings.h"

extern "C" {

int matches(const char* list, const char* overload) { return dipu::NamePatterns(list).match(overload) ? 1 : 0; }

// How many entries of `list` do not match `overload`.
int unmatched(const char* list, const char* overload) {
    return static_cast<int>(dipu::NamePatterns(list).unmatched({overload}).size());
}

int memory_is_checked() { return dipu::settings().check_memory ? 1 : 0; }

int fallbacks_are_logged() { return dipu::settings().log_fallback ? 1 : 0; }

int synchronizes(const char* overload) {
    return dipu::NamePatterns(dipu::settings().synchronize).match(overload) ? 1 : 0;
}
}
