// Serves a model from C and from other languages that can call C. The library is keel_c
// (libkeel_c.so). C++ programs that link the other libraries already contain these functions and
// must not link this library.
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
// Functions return a status. A function that fails changes nothing, including its results, and
// keel_last_error() returns a reason of one line. No function throws a C++ exception. A pointer
// that is NULL gives KEEL_VALUE_ERROR unless its comment allows NULL.
//
// Thread safety: any number of threads may use one model and one result concurrently. Free an
// object only after all threads have finished with it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): the names of a C interface
#define KEEL_API __attribute__((visibility("default")))
#define KEEL_MAX_RANK 8

typedef enum keel_status {
  KEEL_OK = 0,
  KEEL_VALUE_ERROR = 1,            // a value, shape, size or name is wrong
  KEEL_TYPE_ERROR = 2,             // a dtype or layout is wrong
  KEEL_RUNTIME_ERROR = 3,          // any other error
  KEEL_NOT_IMPLEMENTED_ERROR = 4,  // the model needs a feature that this library does not offer
  KEEL_IO_ERROR = 5,               // a file is missing, damaged or of an unknown format
  KEEL_OUT_OF_MEMORY = 6
} keel_status;

typedef enum keel_dtype {
  KEEL_FLOAT32 = 0,
  KEEL_FLOAT64 = 1,
  KEEL_INT32 = 2,
  KEEL_INT64 = 3,
  KEEL_BOOL = 4,  // one byte, 0 or 1; nonzero input bytes count as 1
  KEEL_UINT8 = 5,
  KEEL_STRING = 6,  // keel_string
  KEEL_INT8 = 7
} keel_dtype;

typedef enum keel_layout { KEEL_DENSE = 0, KEEL_RAGGED = 1, KEEL_SPARSE = 2 } keel_layout;

typedef struct keel_model keel_model;
typedef struct keel_result keel_result;

// A string of any bytes. It need not be NUL-terminated.
typedef struct keel_string {
  const char* data;
  size_t size;
} keel_string;

// Describes one input or output of a signature. Dimension 0 is the batch. A dimension of -1 may
// have any size.
typedef struct keel_spec {
  const char* name;  // valid as long as the model
  int dtype;         // keel_dtype
  int layout;        // keel_layout
  int rank;
  int64_t dims[KEEL_MAX_RANK];  // of the dense equivalent; unused dimensions are 0
} keel_spec;

// A named input or output tensor. The memory of an input belongs to the caller, and that of an
// output to the result.
//
//   dense   data contains the values of shape dims in row-major order.
//   ragged  row i has the values [row_splits[i], row_splits[i + 1]). dims is the shape of all
//           values, [values, ...]. row_splits has rows + 1 numbers, starts with 0 and ends with
//           values.
//   sparse  data contains the values. indices contains rank numbers per value, its position in a
//           tensor of shape dims, in row-major order.
typedef struct keel_tensor {
  const char* name;
  int dtype;   // keel_dtype
  int layout;  // keel_layout
  int rank;
  const int64_t* dims;
  const void* data;           // may be NULL if data_size is 0; need not be aligned
  size_t data_size;           // bytes: number of values times the size of one value
  const int64_t* row_splits;  // NULL unless ragged
  size_t row_splits_count;    // number of elements, not bytes
  const int64_t* indices;     // NULL unless sparse; may be NULL if there are no values
  size_t indices_count;       // number of elements, not bytes
} keel_tensor;

// Returns the version, for example "0.1.0".
KEEL_API const char* keel_version(void);

// Returns the reason of the last failed call of this thread, or "" if no call has failed. The
// string is valid until the next failing call of this thread.
KEEL_API const char* keel_last_error(void);

// Sets the number of cores that compute at once, for all models together. The default is the number
// of cores available to the process. Call it before any other function. KEEL_VALUE_ERROR unless 1
// <= count <= 1024.
KEEL_API keel_status keel_set_num_workers(int count);

// Loads a whole model from a ".keras", ".h5" or ".hdf5" file. Free it with keel_model_free.
KEEL_API keel_status keel_model_load(const char* path, keel_model** model);
KEEL_API void keel_model_free(keel_model* model);  // NULL is allowed

// Signatures, by position in ascending order of their names. "serving_default" is always present.
KEEL_API keel_status keel_signature_count(const keel_model* model, size_t* count);
KEEL_API keel_status keel_signature_name(const keel_model* model, size_t position,
                                         const char** name);

// Inputs and outputs of a signature, by position in ascending order of their names. A signature of
// NULL is "serving_default". KEEL_VALUE_ERROR for an unknown signature or a position that is too
// large.
KEEL_API keel_status keel_input_count(const keel_model* model, const char* signature,
                                      size_t* count);
KEEL_API keel_status keel_input_spec(const keel_model* model, const char* signature,
                                     size_t position, keel_spec* spec);
KEEL_API keel_status keel_output_count(const keel_model* model, const char* signature,
                                       size_t* count);
KEEL_API keel_status keel_output_spec(const keel_model* model, const char* signature,
                                      size_t position, keel_spec* spec);

// Runs a signature (NULL: "serving_default") on its inputs, which may be in any order. The inputs
// may be freed after the call. KEEL_VALUE_ERROR for an input that is missing, unknown or given
// twice, for a wrong shape, for inconsistent sizes or row splits, and for another number of rows
// than the first input. KEEL_TYPE_ERROR for a wrong dtype or layout. The error message names the
// input.
KEEL_API keel_status keel_run(const keel_model* model, const char* signature,
                              const keel_tensor* inputs, size_t count, keel_result** result);

// Runs a signature that takes serialized tf.Example messages on `count` of them. A signature of
// NULL selects the only signature that takes examples; KEEL_VALUE_ERROR if there is none or more
// than one.
KEEL_API keel_status keel_run_examples(const keel_model* model, const char* signature,
                                       const keel_string* examples, size_t count,
                                       keel_result** result);

// Outputs, by position in ascending order of their names, or by name. The memory of an output is
// valid as long as the result.
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
