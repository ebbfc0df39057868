// The C API for serving a model, for C and all languages that can call C: library keel_c
// (libkeel_c.so). The C++ libraries contain these functions too; do not link keel_c in addition.
//
//   keel_model* model = NULL;
//   if (keel_model_load("ranker.keras", &model) != KEEL_OK) puts(keel_last_error());
//   const int64_t dims[] = {2, 1}, users[] = {17, 4};
//   const keel_tensor user = {
//       .name = "user", .dtype = KEEL_INT64, .rank = 2, .dims = dims, .data = users,
//       .data_size = sizeof users};
//   keel_result* result = NULL;
//   keel_run(model, NULL, &user, 1, &result);
//   keel_tensor score;
//   keel_result_at(result, 0, &score);  // score.data: float [2, 1]
//   keel_result_free(result);
//   keel_model_free(model);
//
// Functions return a status. A function that fails changes nothing, including its output arguments,
// and keel_last_error() returns the reason in one line. No exception leaves the library. A NULL
// pointer gives KEEL_VALUE_ERROR unless NULL is documented as allowed.
//
// Thread safety: any number of threads may use one model or one result at the same time. No other
// thread may use it while it is freed.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): the names of a C interface
// Marks the functions that the library exports.
#define KEEL_API __attribute__((visibility("default")))
// The largest rank of a tensor.
#define KEEL_MAX_RANK 8

// The result of a call.
typedef enum keel_status {
  KEEL_OK = 0,                     // success
  KEEL_VALUE_ERROR = 1,            // a value, shape, size or name is wrong
  KEEL_TYPE_ERROR = 2,             // a dtype or layout is wrong
  KEEL_RUNTIME_ERROR = 3,          // all other errors
  KEEL_NOT_IMPLEMENTED_ERROR = 4,  // the model needs a feature that is not supported
  KEEL_IO_ERROR = 5,               // a file is missing, damaged or of an unknown format
  KEEL_OUT_OF_MEMORY = 6           // memory is exhausted
} keel_status;

// The element type of a tensor.
typedef enum keel_dtype {
  KEEL_FLOAT32 = 0,  // float
  KEEL_FLOAT64 = 1,  // double
  KEEL_INT32 = 2,    // int32_t
  KEEL_INT64 = 3,    // int64_t
  KEEL_BOOL = 4,     // one byte; in inputs every value except 0 is true, outputs are 0 or 1
  KEEL_UINT8 = 5,    // uint8_t
  KEEL_STRING = 6,   // keel_string
  KEEL_INT8 = 7      // int8_t; codes of quantized tables
} keel_dtype;

// The storage layout of a tensor.
typedef enum keel_layout { KEEL_DENSE = 0, KEEL_RAGGED = 1, KEEL_SPARSE = 2 } keel_layout;

typedef struct keel_model keel_model;    // a loaded model
typedef struct keel_result keel_result;  // the outputs of one run

// A string of any bytes, not necessarily terminated by NUL.
typedef struct keel_string {
  const char* data;  // the bytes; may be NULL if size is 0
  size_t size;       // number of bytes
} keel_string;

// An input or output of a signature. Dimension 0 is the batch. -1 is a dimension of any size.
typedef struct keel_spec {
  const char* name;             // valid as long as the model
  int dtype;                    // keel_dtype
  int layout;                   // keel_layout
  int rank;                     // number of dimensions
  int64_t dims[KEEL_MAX_RANK];  // shape of the dense equivalent; unused elements are 0
} keel_spec;

// A named input or output. The memory that it points to belongs to the caller for an input, and to
// the result for an output.
//
//   dense   `data` holds the elements of shape `dims`, row-major.
//   ragged  `data` holds the values of all rows, of shape `dims` = [n, ...]. Row i consists of the
//           values [row_splits[i], row_splits[i + 1]). `row_splits` has rows + 1 numbers, from 0 to
//           n.
//   sparse  `data` holds n values, and `indices` holds `rank` numbers for each of them, its
//           position in a tensor of shape `dims`. Positions are in row-major order.
typedef struct keel_tensor {
  const char* name;           // name of the input or output
  int dtype;                  // keel_dtype
  int layout;                 // keel_layout
  int rank;                   // number of dimensions
  const int64_t* dims;        // `rank` dimensions; may be NULL if rank is 0
  const void* data;           // may be NULL if data_size is 0; need not be aligned
  size_t data_size;           // in bytes: the number of values times the size of a value
  const int64_t* row_splits;  // NULL unless ragged
  size_t row_splits_count;    // in numbers, not bytes
  const int64_t* indices;     // NULL unless sparse; may be NULL if indices_count is 0
  size_t indices_count;       // in numbers, not bytes
} keel_tensor;

// Returns the version of the library, e.g. "0.1.0".
KEEL_API const char* keel_version(void);

// Returns the error of this thread's last failed call, or "" if no call has failed. Valid until the
// next failing call of this thread.
KEEL_API const char* keel_last_error(void);

// Sets the number of cores that compute at once, for all models together. The default is the number
// of processors available to the process. Call it before any other function. Returns
// KEEL_VALUE_ERROR unless 1 <= count <= 1024.
KEEL_API keel_status keel_set_num_workers(int count);

// Loads a whole model from a ".keras", ".h5" or ".hdf5" file. Free it with keel_model_free().
KEEL_API keel_status keel_model_load(const char* path, keel_model** model);
// Loads a model whose large tables are read in place from the file: it is ready at once, and
// processes that load one file share the memory of its tables. Results have the same bits. Replace
// the file only by rename: a file that is truncated while it is mapped ends the process. Tables
// that cannot be mapped are copied (savedmodel/mapped/mapped_tables.h).
KEEL_API keel_status keel_model_load_mapped(const char* path, keel_model** model);
KEEL_API void keel_model_free(keel_model* model);  // NULL is allowed

// Return the number of signatures, and the name of a signature by position. Names are in ascending
// order and always include "serving_default".
KEEL_API keel_status keel_signature_count(const keel_model* model, size_t* count);
KEEL_API keel_status keel_signature_name(const keel_model* model, size_t position,
                                         const char** name);

// Return the inputs and outputs of a signature by position, in ascending order of names. A NULL
// signature is "serving_default". Return KEEL_VALUE_ERROR for an unknown signature and for a
// position that is out of range.
KEEL_API keel_status keel_input_count(const keel_model* model, const char* signature,
                                      size_t* count);
KEEL_API keel_status keel_input_spec(const keel_model* model, const char* signature,
                                     size_t position, keel_spec* spec);
KEEL_API keel_status keel_output_count(const keel_model* model, const char* signature,
                                       size_t* count);
KEEL_API keel_status keel_output_spec(const keel_model* model, const char* signature,
                                      size_t position, keel_spec* spec);

// Return the weights of the model by position, in the order of the model, or by name, such as
// "user_embedding/embeddings". If several weights have a name, keel_weight_find() returns the
// first. The memory that a weight points to must not be written and is valid as long as the model;
// for a mapped table it is that of the file.
KEEL_API keel_status keel_weight_count(const keel_model* model, size_t* count);
KEEL_API keel_status keel_weight_at(const keel_model* model, size_t position, keel_tensor* weight);
KEEL_API keel_status keel_weight_find(const keel_model* model, const char* name,
                                      keel_tensor* weight);

// Runs a signature, or "serving_default" if it is NULL. Inputs may be in any order and may be freed
// after the call. Free the result with keel_result_free(). Errors name the input. Returns
// - KEEL_VALUE_ERROR if an input is missing, unknown or given twice, if its shape does not fit, if
//   its sizes or row splits are inconsistent, or if its number of rows differs from that of the
//   first input;
// - KEEL_TYPE_ERROR if an input has another dtype or layout.
KEEL_API keel_status keel_run(const keel_model* model, const char* signature,
                              const keel_tensor* inputs, size_t count, keel_result** result);

// Runs a signature on `count` serialized tf.Examples. A NULL signature selects the only signature
// that takes examples; returns KEEL_VALUE_ERROR if there is none or more than one.
KEEL_API keel_status keel_run_examples(const keel_model* model, const char* signature,
                                       const keel_string* examples, size_t count,
                                       keel_result** result);

// Return the outputs of a run, by position in ascending order of names, or by name. The memory that
// they point to is valid as long as the result.
KEEL_API keel_status keel_result_count(const keel_result* result, size_t* count);
KEEL_API keel_status keel_result_at(const keel_result* result, size_t position,
                                    keel_tensor* output);
KEEL_API keel_status keel_result_find(const keel_result* result, const char* name,
                                      keel_tensor* output);
KEEL_API void keel_result_free(keel_result* result);  // NULL is allowed

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif
