// Runs of a compiled program: memory is bound to its roots, then its library runs all instructions in one call.
#include "program.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Allocator.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/ScopeExit.h>
#include <c10/util/bit_cast.h>
#include <dlfcn.h>

#include <algorithm>
#include <utility>

#include "../../contract/address_sanitizer.h"
#include "device/device.h"
#include "device/generator.h"
#include "wrapper/context.h"
#include "wrapper/generator_arg.h"
#include "wrapper/handles.h"
#include "wrapper/status.h"

namespace dipu::compiled {
namespace {

constexpr c10::DispatchKeySet kDeviceKey(c10::DispatchKey::PrivateUse1);

c10::Allocator* allocator() {
    static c10::Allocator* const device_memory = c10::GetAllocator(c10::kPrivateUse1);
    return device_memory;
}

// A storage of so many bytes; it borrows `address`, or owns memory of its own where that is null.
c10::Storage borrowed(void* address, int64_t bytes, c10::DeviceIndex device) {
    c10::DataPtr pointer(address, c10::Device(c10::kPrivateUse1, device));
    return c10::Storage(c10::Storage::use_byte_size_t(), static_cast<std::size_t>(bytes), std::move(pointer), nullptr,
                        false);
}

c10::Storage owned(int64_t bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    return c10::Storage(c10::Storage::use_byte_size_t(), size, allocator()->allocate(size), allocator(), true);
}

at::Tensor tensor_over(const c10::Storage& storage, const View& view) {
    at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage), kDeviceKey,
                                                                 c10::scalarTypeToTypeMeta(view.dtype));
    if (view.conjugate) {
        tensor._set_conj(true);
    }
    if (view.negative) {
        tensor._set_neg(true);
    }
    return tensor;
}

// A write to one bumps the version of the other.
void share_version(const at::Tensor& tensor, const at::Tensor& other) {
    if (!tensor.is_inference() && !other.is_inference()) {
        tensor.unsafeGetTensorImpl()->set_version_counter(other.unsafeGetTensorImpl()->version_counter());
    }
}

// A number among the arguments, or one that lies on the host as a tensor: that by the bits of a double.
int64_t symbol_of(const Value& argument) {
    if (const auto* const number = std::get_if<int64_t>(&argument)) {
        return *number;
    }
    const auto* const tensor = std::get_if<at::Tensor>(&argument);
    TORCH_CHECK(tensor != nullptr && tensor->defined() && tensor->device().is_cpu() && tensor->dim() == 0,
                "an argument of a compiled program must be a number or a 0-d CPU tensor");
    return c10::bit_cast<int64_t>(tensor->item().toDouble());
}

}  // namespace

struct Program::Library {
    void* handle = nullptr;
    void (*numbers)(const int64_t*, int64_t*) = nullptr;
    diopiError_t (*run)(const diopi::compiled::Run*) = nullptr;

    explicit Library(const std::string& path) : handle(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        TORCH_CHECK(handle != nullptr, "the compiled program '", path, "' does not load: ", dlerror());
        const auto version = reinterpret_cast<int32_t (*)()>(symbol("diopi_program_version", path));
        TORCH_CHECK(version() == diopi::compiled::kProgramVersion, "the compiled program '", path, "' is of version ",
                    version(), ", this torch_dipu runs version ", diopi::compiled::kProgramVersion,
                    "; empty the cache of programs");
        numbers = reinterpret_cast<decltype(numbers)>(symbol("diopi_program_numbers", path));
        run = reinterpret_cast<decltype(run)>(symbol("diopi_program_run", path));
    }
    ~Library() {
        if (handle != nullptr) {
            dlclose(handle);
        }
    }
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

    void* symbol(const char* name, const std::string& path) const {
        void* const address = dlsym(handle, name);
        TORCH_CHECK(address != nullptr, "'", path, "' is no compiled program: it lacks ", name);
        return address;
    }
};

Program::Program(Specification specification)
    : specification_(std::move(specification)),
      library_(std::make_unique<Library>(specification_.library)),
      symbols_(specification_.symbols.size()),
      numbers_(static_cast<std::size_t>(specification_.numbers)),
      addresses_(specification_.roots.size(), nullptr),
      owned_(specification_.roots.size()),
      slots_(static_cast<std::size_t>(specification_.slots)) {
    for (std::size_t i = 0; i < specification_.roots.size(); ++i) {
        storages_.push_back(borrowed(nullptr, 0, specification_.device));
    }
    for (const View& view : specification_.views) {
        if (view.slot >= 0) {
            views_.emplace_back();
            continue;
        }
        views_.push_back(tensor_over(storages_[static_cast<std::size_t>(view.root)], view));
    }
    for (const at::Tensor& view : views_) {
        handles_.push_back(view.defined() ? out_handle(view) : nullptr);
    }
    sort_roots();
    if (specification_.streams > 1) {
        lanes_.emplace(specification_.device, static_cast<std::size_t>(specification_.streams),
                       static_cast<std::size_t>(specification_.events));
    }
    if (specification_.replays && Replays::are_served()) {
        begin_replays();
    }
}

void Program::sort_roots() {
    for (std::size_t i = 0; i < specification_.roots.size(); ++i) {
        switch (specification_.roots[i].kind) {
            case RootKind::kArena: arena_roots_.push_back(i); break;
            case RootKind::kInput:
            case RootKind::kConstant: given_roots_.push_back(i); break;
            case RootKind::kOutput: output_roots_.push_back(i); break;
            case RootKind::kIsland: island_roots_.push_back(i); break;
            case RootKind::kZeros: zero_roots_.push_back(i); break;
            case RootKind::kSlot: slot_roots_.push_back(i); break;
        }
    }
    std::vector<int64_t> first(specification_.roots.size(), -1);
    for (std::size_t i = 0; i < specification_.results.size(); ++i) {
        earlier_.push_back(-1);
        if (specification_.results[i].kind != Result::Kind::kView) {
            continue;
        }
        const View& view = specification_.views[static_cast<std::size_t>(specification_.results[i].index)];
        if (const RootKind kind = root_of(view).kind; kind == RootKind::kOutput || kind == RootKind::kIsland) {
            int64_t& of_root = first[static_cast<std::size_t>(view.root)];
            earlier_.back() = std::exchange(of_root, of_root < 0 ? static_cast<int64_t>(i) : of_root);
        }
    }
}

// The first run makes them, and waits until they are there, whichever stream the next one runs on.
void Program::keep_zeros(std::size_t root) {
    const int64_t bytes = value_of(specification_.roots[root].bytes);
    const at::Tensor zeros = at::zeros({bytes}, at::kByte).to(c10::Device(c10::kPrivateUse1, specification_.device));
    owned_[root] = zeros.storage();
    bind_root(root, owned_[root].mutable_data(), bytes);
}

// Memory of the device is given back before the library goes.
Program::~Program() = default;

void Program::read_symbols(const std::vector<Value>& arguments) {
    bool same = shaped_;
    for (std::size_t i = 0; i < symbols_.size(); ++i) {
        const int64_t value = symbol_of(arguments[static_cast<std::size_t>(specification_.symbols[i])]);
        same = same && symbols_[i] == value;
        symbols_[i] = value;
    }
    if (same) {
        return;
    }
    library_->numbers(symbols_.data(), numbers_.data());
    shape_views();
    shaped_ = true;
}

void Program::shape_views() {
    c10::SmallVector<int64_t, 8> sizes, strides;
    for (std::size_t i = 0; i < views_.size(); ++i) {
        const View& view = specification_.views[i];
        if (view.slot >= 0) {
            continue;
        }
        sizes.clear();
        strides.clear();
        for (std::size_t d = 0; d < view.sizes.size(); ++d) {
            sizes.push_back(value_of(view.sizes[d]));
            strides.push_back(value_of(view.strides[d]));
        }
        c10::TensorImpl* const tensor = views_[i].unsafeGetTensorImpl();
        tensor->set_sizes_and_strides(sizes, strides);
        tensor->set_storage_offset(value_of(view.offset));
    }
    arena_bytes_ = value_of(specification_.arena_bytes);
    arena_base_ = nullptr;
}

void Program::bind_root(std::size_t root, void* address, int64_t bytes) {
    if (addresses_[root] == address && static_cast<int64_t>(storages_[root].nbytes()) == bytes) {
        return;
    }
    addresses_[root] = static_cast<char*>(address);
    c10::StorageImpl* const storage = storages_[root].unsafeGetStorageImpl();
    storage->set_data_ptr_noswap(c10::DataPtr(address, c10::Device(c10::kPrivateUse1, specification_.device)));
    storage->set_nbytes(static_cast<std::size_t>(bytes));
}

// Memory that comes back from the allocator's cache is most often what the last run had.
void Program::place_arena(char* base) {
    if (base == arena_base_) {
        return;
    }
    for (const std::size_t i : arena_roots_) {
        // Operators may copy a whole storage: it ends where the arena does.
        const int64_t offset = value_of(specification_.roots[i].offset);
        bind_root(i, base + offset, arena_bytes_ - offset);
    }
    arena_base_ = base;
}

Program::Blocks Program::run_memory() {
    Blocks blocks;
    if constexpr (diopi::kAddressSanitizer) {
        for (const std::size_t i : arena_roots_) {
            const int64_t bytes = value_of(specification_.roots[i].bytes);
            blocks.push_back(allocator()->allocate(static_cast<std::size_t>(bytes)));
            bind_root(i, blocks.back().get(), bytes);
        }
    } else {
        blocks.push_back(allocator()->allocate(static_cast<std::size_t>(arena_bytes_)));
        place_arena(static_cast<char*>(blocks.back().get()));
    }
    return blocks;
}

const at::Tensor& Program::given(const Root& root) const {
    const auto index = static_cast<std::size_t>(root.index);
    if (root.kind == RootKind::kConstant) {
        return specification_.constants[index];
    }
    const at::Tensor* const tensor = std::get_if<at::Tensor>(&arguments_[index]);
    TORCH_CHECK(tensor != nullptr && tensor->defined(), "argument ", index, " of a compiled program is a tensor");
    return *tensor;
}

// A gradient may come as a conjugate, whatever the graph was traced with: kernels read what lies in memory.
void Program::resolve_arguments() {
    for (const std::size_t i : given_roots_) {
        const Root& root = specification_.roots[i];
        if (root.kind == RootKind::kInput && (given(root).is_conj() || given(root).is_neg())) {
            arguments_[static_cast<std::size_t>(root.index)] = given(root).resolve_conj().resolve_neg();
        }
    }
}

void Program::bind_roots() {
    for (const std::size_t i : given_roots_) {
        const at::Tensor& tensor = given(specification_.roots[i]);
        const auto first = static_cast<int64_t>(tensor.storage_offset() * static_cast<int64_t>(tensor.itemsize()));
        bind_root(i, const_cast<void*>(tensor.const_data_ptr()),
                  static_cast<int64_t>(tensor.storage().nbytes()) - first);
    }
    for (const std::size_t i : output_roots_) {
        const int64_t bytes = value_of(specification_.roots[i].bytes);
        owned_[i] = owned(bytes);
        bind_root(i, owned_[i].mutable_data(), bytes);
    }
    for (const std::size_t i : zero_roots_) {
        if (!owned_[i]) {
            keep_zeros(i);
        }
    }
    for (const std::size_t i : slot_roots_) {
        const Root& root = specification_.roots[i];
        const auto index = static_cast<std::size_t>(root.index);
        if (root.index >= 0) {
            slots_[static_cast<std::size_t>(root.offset.value)] =
                index < arguments_.size() ? std::get<at::Tensor>(arguments_[index])
                                          : specification_.constants[index - arguments_.size()];
        }
    }
}

// A tensor over memory that outlives the run: the run allocated it, or it is an argument's.
at::Tensor Program::over_own_memory(const View& view, const at::Tensor& shape) const {
    const Root& root = root_of(view);
    const bool is_given = root.kind == RootKind::kInput || root.kind == RootKind::kConstant;
    const at::Tensor base = is_given ? given(root) : at::Tensor();
    at::Tensor result = tensor_over(is_given ? base.storage() : owned_[static_cast<std::size_t>(view.root)], view);
    const auto width = static_cast<int64_t>(result.itemsize());
    const auto first = is_given ? base.storage_offset() * static_cast<int64_t>(base.itemsize()) / width : 0;
    result.unsafeGetTensorImpl()->set_sizes_and_strides(shape.sizes(), shape.strides(), first + shape.storage_offset());
    if (is_given) {
        share_version(result, base);
    }
    return result;
}

// A tensor that the caller keeps.
at::Tensor Program::returned(std::size_t index) const {
    const View& view = specification_.views[index];
    if (view.slot < 0) {
        return over_own_memory(view, views_[index]);
    }
    const at::Tensor& tensor = slots_[static_cast<std::size_t>(view.slot)];
    const bool borrows =
        tensor.has_storage() && tensor.storage().is_alias_of(storages_[static_cast<std::size_t>(view.root)]);
    return borrows ? over_own_memory(view, tensor) : tensor;
}

std::vector<Value> Program::results() const {
    std::vector<Value> found;
    found.reserve(specification_.results.size());
    for (const Result& result : specification_.results) {
        const auto index = static_cast<std::size_t>(result.index);
        switch (result.kind) {
            case Result::Kind::kView: found.emplace_back(returned(index)); break;
            case Result::Kind::kArgument: found.push_back(arguments_[index]); break;
            case Result::Kind::kNumber: found.emplace_back(value_of(result.number)); break;
            case Result::Kind::kNothing: found.emplace_back(); break;
        }
        if (const int64_t earlier = earlier_[found.size() - 1]; earlier >= 0) {
            share_version(std::get<at::Tensor>(found.back()),
                          std::get<at::Tensor>(found[static_cast<std::size_t>(earlier)]));
        }
    }
    return found;
}

at::Tensor Program::view(int64_t index) {
    const View& view = specification_.views[static_cast<std::size_t>(index)];
    return view.slot >= 0 ? slots_[static_cast<std::size_t>(view.slot)] : views_[static_cast<std::size_t>(index)];
}

void Program::fail(diopiContextHandle_t context, diopiError_t status, int32_t instruction) {
    if (failure_ != nullptr) {
        std::rethrow_exception(std::exchange(failure_, nullptr));
    }
    const std::string& name = specification_.instructions[static_cast<std::size_t>(instruction)];
    raise_failed_request(context, status, name.c_str());
    refused(status, name.c_str(), Raises::kError);
    raise_failure();
    TORCH_CHECK(false, "instruction ", instruction, " of a compiled program, ", name,
                ", is not served by the vendor's library (status ", static_cast<int>(status), ")");
}

diopiError_t Program::run_library(const diopi::compiled::Run& run) {
    if (!lanes_.has_value()) {
        return library_->run(&run);
    }
    Lanes::Run lanes(*lanes_, run.context);
    lane_run_ = &lanes;
    const diopiError_t status = library_->run(&run);
    lane_run_ = nullptr;
    if (status != diopiSuccess && failure_ == nullptr) {
        failure_ = lanes.failure();
    }
    return status;
}

diopi::compiled::Run Program::run_on(diopiContextHandle_t context, int32_t& at) {
    return {context,
            context->stream,
            generator_handle(default_generator(specification_.device)),
            addresses_.data(),
            numbers_.data(),
            handles_.data(),
            &Program::on_island,
            &Program::on_refusal,
            &Program::on_begin_draw,
            &Program::on_end_draw,
            &Program::on_stored_generator,
            watch_ ? &Program::on_watch : nullptr,
            &Program::on_enter,
            &Program::on_mark,
            &Program::on_wait,
            this,
            &at};
}

// A run as it is: all its instructions are put on the stream.
void Program::run_once() {
    const Blocks memory = run_memory();
    bind_roots();
    Context context(specification_.device);
    int32_t at = 0;
    failure_ = nullptr;
    const diopiError_t status = run_library(run_on(context, at));
    if (status != diopiSuccess) {
        fail(context, status, at);
    }
}

// What a run leaves behind however it ends.
void Program::let_go() noexcept {
    for (const std::vector<std::size_t>* const roots : {&output_roots_, &island_roots_}) {
        for (const std::size_t i : *roots) {
            owned_[i] = c10::Storage();
        }
    }
    std::fill(slots_.begin(), slots_.end(), at::Tensor());
    stored_generator_ = at::Generator();
    arguments_.clear();
}

std::vector<Value> Program::run(std::vector<Value> arguments) {
    TORCH_CHECK(static_cast<int64_t>(arguments.size()) == specification_.arguments, "a compiled program takes ",
                specification_.arguments, " arguments, not ", arguments.size());
    const std::lock_guard lock(running_);
    const DeviceScope scope(specification_.device);
    read_symbols(arguments);
    arguments_ = std::move(arguments);
    const auto end = c10::make_scope_exit([&] { let_go(); });
    resolve_arguments();
    const bool launched = run_recorded();
    if (!launched) {
        run_once();
    }
    if (replays_.has_value()) {
        replays_->count(launched);
    }
    return results();
}

}  // namespace dipu::compiled
