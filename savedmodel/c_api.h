// Serving a model from C, and from whatever calls C: library keel_c (libkeel_c.so). Programs in C++
// that link the other libraries have it in them, and do not link this one.
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
// Functions return a status. One that fails changes nothing, its results included, and
// keel_last_error() says why in one line. Nothing is ever thrown at the caller. A pointer that is
// NULL where that is not said to be allowed is KEEL_VALUE_ERROR.
//
// Threads: any number of them may use one model, and one result, at once; freeing is for the last.
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
  KEEL_RUNTIME_ERROR = 3,          // whatever has no code of its own
  KEEL_NOT_IMPLEMENTED_ERROR = 4,  // the model needs what this library does not offer
  KEEL_IO_ERROR = 5,               // a file is missing, damaged or none of ours
  KEEL_OUT_OF_MEMORY = 6
} keel_status;

typedef enum keel_dtype {
  KEEL_FLOAT32 = 0,
  KEEL_FLOAT64 = 1,
  KEEL_INT32 = 2,
  KEEL_INT64 = 3,
  KEEL_BOOL = 4,  // a byte, 0 or 1; given, others than 0 count as 1
  KEEL_UINT8 = 5,
  KEEL_STRING = 6,  // keel_string
  KEEL_INT8 = 7
} keel_dtype;

typedef enum keel_layout { KEEL_DENSE = 0, KEEL_RAGGED = 1, KEEL_SPARSE = 2 } keel_layout;

typedef struct keel_model keel_model;
typedef struct keel_result keel_result;

// Any bytes; they need not end in a NUL.
typedef struct keel_string {
  const char* data;
  size_t size;
} keel_string;

// What a signature takes or returns. Dimension 0 is the batch; -1 is one of any size.
typedef struct keel_spec {
  const char* name;  // lives as long as the model
  int dtype;         // keel_dtype
  int layout;        // keel_layout
  int rank;
  int64_t dims[KEEL_MAX_RANK];  // of the dense equivalent; those past the rank are 0
} keel_spec;

// A named tensor, given or received; what it points to belongs to the caller, or to the result.
//
//   dense   data has the values of shape dims, row-major.
//   ragged  row i has values [row_splits[i], row_splits[i + 1]); dims is the shape of all values,
//           [values, ...], and row_splits, of rows + 1 numbers, begins with 0 and ends with values.
//   sparse  data has the values, indices the place of each in a tensor of shape dims: rank
//           numbers, in row-major order.
typedef struct keel_tensor {
  const char* name;
  int dtype;   // keel_dtype
  int layout;  // keel_layout
  int rank;
  const int64_t* dims;
  const void* data;           // may be NULL if data_size is 0; need not be aligned
  size_t data_size;           // in bytes: the number of values times the size of one
  const int64_t* row_splits;  // NULL unless ragged
  size_t row_splits_count;    // numbers, not bytes
  const int64_t* indices;     // NULL unless sparse; NULL too if there are none
  size_t indices_count;       // numbers, not bytes
} keel_tensor;

// "0.1.0"
KEEL_API const char* keel_version(void);

// Why the last call of this thread that failed did so; "" if none has. It lives until the next
// call of this thread that fails.
KEEL_API const char* keel_last_error(void);

// How many cores compute at once, for all models together; by default those of the process. Call it
// before anything else. KEEL_VALUE_ERROR unless 1 <= count <= 1024.
KEEL_API keel_status keel_set_num_workers(int count);

// A whole model from a file of any format that has one: ".keras", ".h5", ".hdf5".
KEEL_API keel_status keel_model_load(const char* path, keel_model** model);
KEEL_API void keel_model_free(keel_model* model);  // NULL is allowed

// Signatures, by position; the names ascend. "serving_default" is always there.
KEEL_API keel_status keel_signature_count(const keel_model* model, size_t* count);
KEEL_API keel_status keel_signature_name(const keel_model* model, size_t position,
                                         const char** name);

// What a signature takes and returns, by position; names ascend. NULL for "serving_default".
// KEEL_VALUE_ERROR for a name that no signature has and a position that is too large.
KEEL_API keel_status keel_input_count(const keel_model* model, const char* signature,
                                      size_t* count);
KEEL_API keel_status keel_input_spec(const keel_model* model, const char* signature,
                                     size_t position, keel_spec* spec);
KEEL_API keel_status keel_output_count(const keel_model* model, const char* signature,
                                       size_t* count);
KEEL_API keel_status keel_output_spec(const keel_model* model, const char* signature,
                                      size_t position, keel_spec* spec);

// Runs a signature (NULL: "serving_default") on its inputs, in any order; they are not needed
// afterwards. KEEL_VALUE_ERROR for an input that is missing, unknown or given twice, whose shape
// does not fit, whose sizes or row splits contradict each other or that has another number of
// rows than the first one; KEEL_TYPE_ERROR for another dtype or layout. Errors name the input.
KEEL_API keel_status keel_run(const keel_model* model, const char* signature,
                              const keel_tensor* inputs, size_t count, keel_result** result);

// Runs a signature that takes serialized tf.Example on `count` of them. A signature of NULL is the
// only one that does; KEEL_VALUE_ERROR if there is none or several.
KEEL_API keel_status keel_run_examples(const keel_model* model, const char* signature,
                                       const keel_string* examples, size_t count,
                                       keel_result** result);

// The outputs, by position (names ascend) or by name. What they point to lives as long as the
// result.
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
