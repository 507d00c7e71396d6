// What the C++ tests share: checks that end the process, and a choice of the test by its name.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            std::exit(1);                                                                \
        }                                                                                \
    } while (false)

// That a message says `part`.
#define CHECK_SAYS(message, part)                                                                    \
    do {                                                                                             \
        const char* said = (message);                                                                \
        if (std::strstr(said, part) == nullptr) {                                                    \
            std::fprintf(stderr, "%s:%d: '%s' does not say '%s'\n", __FILE__, __LINE__, said, part); \
            std::exit(1);                                                                            \
        }                                                                                            \
    } while (false)

struct NamedTest {
    const char* name;
    void (*run)();
};

template <size_t N>
int run_named_test(const NamedTest (&tests)[N], int argc, char** argv) {
    for (const NamedTest& test : tests) {
        if (argc < 2) {
            std::printf("%s\n", test.name);
        } else if (std::strcmp(test.name, argv[1]) == 0) {
            test.run();
            return 0;
        }
    }
    return argc < 2 ? 0 : 2;
}
