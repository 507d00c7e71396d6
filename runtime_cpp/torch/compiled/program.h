// A compiled program: loads its library, binds memory to it and runs it, without Python and without the dispatcher.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "export.h"
#include "lanes.h"
#include "program_abi.h"
#include "replays.h"

namespace dipu::compiled {

// A number that is known when the program is compiled, or an entry of the table that follows from the symbols; a
// fraction lies there by its bits.
struct Number {
    int64_t value;  // the number, or where it stands in the table
    bool symbolic;
};

enum class RootKind {
    kInput,     // the memory of an argument, from its first element on
    kArena,     // a part of the program's own memory
    kOutput,    // memory of its own, which the caller gets
    kIsland,    // what an operator of the framework returned
    kConstant,  // a tensor that the program brings along
    kZeros,     // what the program keeps of zeros
    kSlot,      // a tensor that only islands touch: of another device, or of sizes that only data decide
};

// A block of memory.
struct Root {
    RootKind kind;
    int64_t index;  // of an input: which argument; of a constant: which one; of a slot: which argument, or behind
                         // those which constant, or -1
    Number bytes;        // of an output
    Number offset;       // of a part of the arena; of a slot: where the argument or constant is put
};

// A tensor over a root; sizes and strides count elements, the offset from the root's first. Of a slot nothing else is
// known than its number and whose memory it has.
struct View {
    int64_t root;
    c10::ScalarType dtype;
    std::vector<Number> sizes;
    std::vector<Number> strides;
    Number offset;
    bool conjugate;     // who reads it takes the conjugate of what lies there
    bool negative;      // or the negative
    int64_t slot;  // -1 for any other view
};

// An argument of an island: a value of the schema, with tensors and symbolic numbers that are filled in for each run.
struct IslandArgument {
    enum class Kind { kValue, kTensor, kTensors, kNumber, kFraction, kNumbers };
    Kind kind;
    c10::IValue value;
    std::vector<int64_t> tensors;  // views; -1 for an absent one
    std::vector<Number> numbers;
    bool list_of_optional = false;
    bool tensor_of_number = false;  // the operator takes the number as a tensor
};

// A number as operators take it in place of a tensor: it does not affect the dtype of a result.
DIPU_API at::Tensor number_tensor(const at::Scalar& number);

// An operator of the framework between instructions of the program.
struct Island {
    c10::OperatorHandle op;
    std::vector<IslandArgument> arguments;
    std::vector<int64_t> results;  // the view of each returned tensor; -1 where nobody reads it
};

// What a run returns: a view, an argument itself, a number, or nothing.
struct Result {
    enum class Kind { kView, kArgument, kNumber, kNothing };
    Kind kind;
    int64_t index;
    Number number;
};

struct Specification {
    std::string library;
    c10::DeviceIndex device;
    int64_t arguments;
    std::vector<int64_t> symbols;  // which arguments are the symbols, in order
    int64_t numbers;               // entries of the table
    Number arena_bytes;
    std::vector<Root> roots;
    std::vector<View> views;
    std::vector<Island> islands;
    std::vector<Island> substitutes;  // what runs where the vendor's library refuses a call
    std::vector<Result> results;
    std::vector<at::Tensor> constants;
    int64_t streams;  // 1: one instruction behind the other
    int64_t events;   // that streams wait for
    bool replays;          // runs are recorded and done again, where the vendor and the program let them
    std::vector<int64_t> held;     // arguments that are parameters and buffers
    std::vector<int64_t> fixed;    // arguments that are never copied
    std::vector<int64_t> written;  // roots that instructions write
    int64_t visible;  // results from the first on that the caller may hold for longer than to the next run
    int64_t slots;  // how many tensors only islands touch
    std::vector<std::string> instructions;  // e.g. "diopiMm (mm_3)", for messages and profiles
};

using Value = std::variant<std::monostate, at::Tensor, int64_t>;

// Called after each instruction with its index, when the program is watched.
using Watch = std::function<void(int64_t)>;

class DIPU_API Program {
public:
    // Throws c10::Error when the library does not load or is of another version.
    explicit Program(Specification specification);
    ~Program();
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    // Runs on the current stream of the program's device. One run at a time; others wait.
    std::vector<Value> run(std::vector<Value> arguments);

    // The tensor of a view while a watch is called. It borrows the memory: copy what is kept.
    at::Tensor view(int64_t index);

    void set_watch(Watch watch) { watch_ = std::move(watch); }

    const Specification& specification() const { return specification_; }
    int64_t arena_bytes() const { return arena_bytes_; }

    // What was recorded of runs; null where none is.
    const Replays* replays() const { return replays_.has_value() ? &*replays_ : nullptr; }

private:
    struct Library;

    // What an island is given: memory, and the root that it is.
    struct Read {
        int64_t root;
        c10::Storage storage;
    };

    int64_t value_of(const Number& number) const {
        return number.symbolic ? numbers_[static_cast<std::size_t>(number.value)] : number.value;
    }
    at::Scalar scalar_of(const IslandArgument& argument) const;
    void read_symbols(const std::vector<Value>& arguments);
    void shape_views();
    void sort_roots();
    void keep_zeros(std::size_t root);
    // The arena; under AddressSanitizer a block for each of its roots, so that the vendor sees the end of each.
    using Blocks = c10::SmallVector<c10::DataPtr, 1>;
    Blocks run_memory();
    void place_arena(char* base);
    void bind_roots();
    void bind_root(std::size_t root, void* address, int64_t bytes);
    const at::Tensor& given(const Root& root) const;
    void resolve_arguments();
    at::Tensor operand(int64_t view) const;
    void run_island(const Island& island);
    at::Tensor stack_tensor(int64_t view, std::vector<Read>& reads) const;
    void take_result(int64_t view, const at::Tensor& result, const std::vector<Read>& reads);
    const Root& root_of(const View& view) const { return specification_.roots[static_cast<std::size_t>(view.root)]; }
    std::vector<Value> results() const;
    at::Tensor returned(std::size_t view) const;
    at::Tensor over_own_memory(const View& view, const at::Tensor& shape) const;
    diopiError_t run_library(const diopi::compiled::Run& run);
    diopi::compiled::Run run_on(diopiContextHandle_t context, int32_t& at);
    void run_once();
    void let_go() noexcept;
    // Recordings (program_recording.cpp).
    void begin_replays();
    bool run_recorded();
    void note_places();
    std::unique_ptr<Recording> recorded(const RunPlaces& run);
    void bind_recording(Recording& recording, const RunPlaces& run);
    std::string issued(Recording& recording);
    std::string keep_results(Recording& recording);
    void take_results(const Recording& recording, diopiStreamHandle_t stream);
    std::string reason_of(diopiError_t status);
    [[noreturn]] void fail(diopiContextHandle_t context, diopiError_t status, int32_t instruction);
    template <class Act>
    diopiError_t guarded(const Act& act) noexcept;
    static diopiError_t on_enter(void* program, int32_t stream, diopiContextHandle_t* context,
                                 diopiStreamHandle_t* handle) noexcept;
    static diopiError_t on_mark(void* program, int32_t event) noexcept;
    static diopiError_t on_wait(void* program, int32_t event) noexcept;
    static diopiError_t on_island(void* program, int32_t index) noexcept;
    static diopiError_t on_refusal(void* program, int32_t index, diopiError_t status) noexcept;
    static void on_begin_draw(void* program) noexcept;
    static diopiError_t on_end_draw(void* program, int32_t seed, int32_t offset, diopiError_t status) noexcept;
    static diopiGeneratorHandle_t on_stored_generator(void* program, int32_t seed, int32_t offset) noexcept;
    static diopiError_t on_watch(void* program, int32_t instruction) noexcept;

    Specification specification_;
    std::unique_ptr<Library> library_;
    std::mutex running_;
    Watch watch_;
    bool shaped_ = false;
    std::vector<int64_t> symbols_;
    std::vector<int64_t> numbers_;
    int64_t arena_bytes_ = 0;
    std::vector<at::Tensor> views_;  // what handles point to
    std::vector<diopiTensorHandle_t> handles_;
    std::vector<c10::Storage> storages_;  // of the roots; they borrow their memory
    std::vector<char*> addresses_;
    std::vector<c10::Storage> owned_;  // of outputs and of what islands returned
    std::vector<at::Tensor> slots_;
    std::vector<Value> arguments_;  // of the run
    at::Generator stored_generator_;  // what a gradient draws from that runs
    std::exception_ptr failure_;
    std::optional<Lanes> lanes_;
    std::optional<Replays> replays_;
    std::vector<std::size_t> argument_roots_;  // those of the arguments
    std::vector<std::size_t> result_roots_;  // whose memory results have, each once
    std::vector<bool> is_visible_;  // by root
    std::vector<Place> places_;  // of the arguments in this run
    bool recording_ = false;
    Lanes::Run* lane_run_ = nullptr;  // while a program on several streams runs
    // The roots by what binds them, and by result the one before it that has the same memory, or -1.
    std::vector<std::size_t> arena_roots_, given_roots_, output_roots_, island_roots_, slot_roots_, zero_roots_;
    std::vector<int64_t> earlier_;
    char* arena_base_ = nullptr;  // where the arena was when its roots were bound
};

}  // namespace dipu::compiled
