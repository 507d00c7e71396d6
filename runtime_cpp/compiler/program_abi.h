// What a compiled program and the executor that loads it agree on. Free of PyTorch, so that a program compiles in a moment.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>

namespace diopi::compiled {

// Raised with every change of this file.
constexpr int32_t kProgramVersion = 6;

// One run. Everything it points to belongs to the executor and lives until the run returns.
struct Run {
    diopiContextHandle_t context;
    diopiStreamHandle_t stream;
    diopiGeneratorHandle_t generator;  // the device's own
    char* const* roots;  // the address of each block of memory that the program knows
    const int64_t* numbers;  // sizes, strides and offsets that only the symbols give
    diopiTensorHandle_t const* tensors;  // what library functions take
    // Runs an operator of the framework in the middle of the program.
    diopiError_t (*island)(void* executor, int32_t index);
    // Runs the operator behind a call that the library refused with a status; gives the status back where it was no refusal.
    diopiError_t (*refused)(void* executor, int32_t substitute, diopiError_t status);
    // Around a call that draws, with the call's status: others draw before or behind it, and where it leaves the generator is
    // kept in two views, seed and offset, unless they are -1.
    void (*begin_draw)(void* executor);
    diopiError_t (*end_draw)(void* executor, int32_t seed, int32_t offset, diopiError_t status);
    // A generator that stands where two views say, until the next one is asked for.
    diopiGeneratorHandle_t (*stored_generator)(void* executor, int32_t seed, int32_t offset);
    // Called after each instruction when the program is watched; null otherwise.
    diopiError_t (*watch)(void* executor, int32_t instruction);
    // Of a program on several streams: goes on on another one and gives its context; marks the work so far of the stream
    // that runs, or lets it wait for a mark.
    diopiError_t (*enter)(void* executor, int32_t stream, diopiContextHandle_t* context, diopiStreamHandle_t* handle);
    diopiError_t (*mark)(void* executor, int32_t event);
    diopiError_t (*wait)(void* executor, int32_t event);
    void* executor;
    int32_t* at;  // the instruction that runs, for the message of a failure
};

}  // namespace diopi::compiled

// The namespace of what is a program's own: without a name, or, where its kernels are compiled apart, with one by which both
// parts of it know them.
#if defined(DIOPI_KERNELS_APART)
#define DIOPI_PROGRAM_SPACE diopi_program
#else
#define DIOPI_PROGRAM_SPACE
#endif

#define DIOPI_PROGRAM_EXPORT extern "C" __attribute__((visibility("default")))

// A program exports:
//   int32_t diopi_program_version()
//   void diopi_program_numbers(const int64_t* symbols, int64_t* numbers)
//   diopiError_t diopi_program_run(const diopi::compiled::Run*)
