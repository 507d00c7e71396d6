// The run-time functions without a framework, for test drivers: loads a vendor library and makes contexts, tensors and
// generators.
//
// libdiopirt.so defines the functions of diopirt.h and diopi_register.h over these objects. A function that gives an int
// returns 0 on success, one that gives a pointer returns null on failure; standalone_last_error() says what happened.
// Objects may be used by one thread at a time.
#ifndef DIOPI_STANDALONE_H_
#define DIOPI_STANDALONE_H_

#include <diopi/diopirt.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* Of the calling thread; "" when nothing has failed. */
const char* standalone_last_error(void);

/* Opens the vendor library; one for the life of the process. Loading the same one again does nothing. */
int standalone_load(const char* libdiopi_impl_path);
/* The address of a function of the vendor library, or null. */
void* standalone_symbol(const char* name);
/* Chooses the device of the calling thread, for what is created from now on. */
int standalone_set_device(int device);
/* How many bytes of the current device are in use, by whomever. Fails where the vendor does not tell. */
int standalone_device_memory(uint64_t* used_bytes);

/* A context has a stream and owns what diopiRequireTensor and diopiRequireBuffer gave. */
diopiContextHandle_t standalone_context_create(void);
int standalone_context_destroy(diopiContextHandle_t ctx);
int standalone_context_synchronize(diopiContextHandle_t ctx);
/* Takes back the tensors that the context owns; their memory is used again. */
int standalone_context_reset(diopiContextHandle_t ctx);
/* Fails when something was written before or behind a tensor that the context owns, or owned. */
int standalone_context_check_guards(diopiContextHandle_t ctx);

/* A view of a new storage of `storage_elements` elements. Null strides are row-major. */
diopiTensorHandle_t standalone_tensor_create(const int64_t* sizes, const int64_t* strides, int64_t ndim,
                                             int64_t storage_offset, int64_t storage_elements, int dtype, int device);
int standalone_tensor_destroy(diopiTensorHandle_t th);
/* The whole storage, to and from host memory; both wait for the device before and after. */
int standalone_tensor_write(diopiTensorHandle_t th, const void* src, uint64_t bytes);
int standalone_tensor_read(diopiConstTensorHandle_t th, void* dst, uint64_t bytes);
/* Fails when something was written before or behind the storage. */
int standalone_tensor_check_guards(diopiConstTensorHandle_t th);

/* The byte, 0 to 255, that fresh memory is filled with from now on, and memory that a context hands out again; 0xFF before.
   A result that depends on it comes from memory that nobody wrote. */
int standalone_set_fresh(int byte);

diopiGeneratorHandle_t standalone_generator_create(uint64_t seed);
int standalone_generator_destroy(diopiGeneratorHandle_t th);

#if defined(__cplusplus)
}
#endif
#endif
