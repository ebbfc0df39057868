// Serves a model from C: prints the signatures of a file, and the outputs of a signature for inputs
// given as text.
//
//   serve_c MODEL                                  lists the signatures
//   serve_c MODEL NAME=ROW;ROW;... ...             runs "serving_default"
//   serve_c MODEL --signature S NAME=ROW;... ...   runs another signature
//   serve_c MODEL --records FILE.tfrecord          runs the signature that takes tf.Example
//
// The values of a row are separated by commas, "seen=3,5;;9". Rows of a ragged input may have any
// number of values. Dense inputs may have at most one dimension besides the batch.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <keel/savedmodel/c_api.h>

enum { kMaxInputs = 64 };

static void die(const char* what) {
  fprintf(stderr, "serve_c: %s\n", what);
  exit(2);
}

static void check(keel_status status) {
  if (status != KEEL_OK) die(keel_last_error());
}

static void* allocate(size_t count, size_t size) {
  void* out = calloc(count > 0 ? count : 1, size);
  if (out == NULL) die("out of memory");
  return out;
}

static const char* dtype_name(int dtype) {
  static const char* const names[] = {"float32", "float64", "int32", "int64",
                                      "bool",    "uint8",   "string", "int8"};
  const int count = sizeof names / sizeof *names;
  return dtype >= 0 && dtype < count ? names[dtype] : "unknown dtype";
}

static void print_spec(const keel_spec* spec) {
  static const char* const layouts[] = {"", "ragged ", "sparse "};
  printf("%s: %s%s [", spec->name, layouts[spec->layout], dtype_name(spec->dtype));
  for (int i = 0; i < spec->rank; ++i) {
    if (i > 0) printf(", ");
    if (spec->dims[i] < 0) {
      printf("?");
    } else {
      printf("%" PRId64, spec->dims[i]);
    }
  }
  printf("]");
}

static void print_signatures(const keel_model* model) {
  size_t signatures, inputs, outputs;
  keel_spec spec;
  check(keel_signature_count(model, &signatures));
  for (size_t s = 0; s < signatures; ++s) {
    const char* name;
    check(keel_signature_name(model, s, &name));
    printf("%s\n", name);
    check(keel_input_count(model, name, &inputs));
    for (size_t i = 0; i < inputs; ++i) {
      check(keel_input_spec(model, name, i, &spec));
      printf("  takes ");
      print_spec(&spec);
      printf("\n");
    }
    check(keel_output_count(model, name, &outputs));
    for (size_t i = 0; i < outputs; ++i) {
      check(keel_output_spec(model, name, i, &spec));
      printf("  gives ");
      print_spec(&spec);
      printf("\n");
    }
  }
}

static size_t value_size(int dtype) {
  switch (dtype) {
    case KEEL_FLOAT64:
    case KEEL_INT64:
      return 8;
    case KEEL_BOOL:
    case KEEL_UINT8:
    case KEEL_INT8:
      return 1;
    case KEEL_STRING:
      return sizeof(keel_string);
    default:
      return 4;
  }
}

static void put_value(int dtype, char* text, size_t length, void* values, size_t position) {
  text[length] = '\0';
  char* end = text;
  errno = 0;
  switch (dtype) {
    case KEEL_FLOAT32:
      ((float*)values)[position] = strtof(text, &end);
      break;
    case KEEL_FLOAT64:
      ((double*)values)[position] = strtod(text, &end);
      break;
    case KEEL_INT32:
      ((int32_t*)values)[position] = (int32_t)strtol(text, &end, 10);
      break;
    case KEEL_INT64:
      ((int64_t*)values)[position] = strtoll(text, &end, 10);
      break;
    case KEEL_INT8:
      ((int8_t*)values)[position] = (int8_t)strtol(text, &end, 10);
      break;
    case KEEL_BOOL:
    case KEEL_UINT8:
      ((uint8_t*)values)[position] = (uint8_t)strtol(text, &end, 10);
      break;
    default:
      ((keel_string*)values)[position] = (keel_string){.data = text, .size = length};
      return;
  }
  if (end != text + length || length == 0 || errno != 0)
    die("an input contains text that is not a number");
}

// Fills `input` from "ROW;ROW". `text` must outlive `input`.
static void parse_rows(const keel_spec* spec, char* text, keel_tensor* input) {
  const size_t most = strlen(text) + 1;
  char* values = allocate(most, value_size(spec->dtype));
  int64_t* splits = allocate(most + 1, sizeof *splits);
  int64_t* dims = allocate(2, sizeof *dims);
  size_t count = 0, rows = 0;
  for (int more = 1; more;) {
    const size_t length = strcspn(text, ",;");
    const char stop = text[length];
    const int empty_row = length == 0 && stop != ',' && splits[rows] == (int64_t)count;
    if (!empty_row) put_value(spec->dtype, text, length, values, count++);
    if (stop != ',') splits[++rows] = (int64_t)count;
    more = stop != '\0';
    text += length + 1;
  }
  *input = (keel_tensor){.name = spec->name,
                         .dtype = spec->dtype,
                         .layout = spec->layout,
                         .rank = spec->rank,
                         .dims = dims,
                         .data = values,
                         .data_size = count * value_size(spec->dtype)};
  if (spec->layout == KEEL_RAGGED) {
    input->rank = 1;
    dims[0] = (int64_t)count;
    input->row_splits = splits;
    input->row_splits_count = rows + 1;
    return;
  }
  if (spec->layout != KEEL_DENSE || spec->rank > 2)
    die("an input has a shape that cannot be given as text");
  for (size_t i = 0; i < rows; ++i) {
    if (splits[i + 1] * (int64_t)rows != (int64_t)((i + 1) * count))
      die("the rows of a dense input must have the same length");
  }
  dims[0] = (int64_t)rows;
  dims[1] = (int64_t)(count / rows);
  free(splits);
}

static const keel_spec* find_spec(const keel_model* model, const char* signature, const char* name,
                                  keel_spec* spec) {
  size_t inputs;
  check(keel_input_count(model, signature, &inputs));
  for (size_t i = 0; i < inputs; ++i) {
    check(keel_input_spec(model, signature, i, spec));
    if (strcmp(spec->name, name) == 0) return spec;
  }
  return NULL;
}

static keel_result* run_text(const keel_model* model, const char* signature, int count,
                             char** arguments) {
  keel_tensor inputs[kMaxInputs] = {0};
  if (count > kMaxInputs) die("too many inputs");
  for (int i = 0; i < count; ++i) {
    char* equals = strchr(arguments[i], '=');
    if (equals == NULL) die("inputs must have the form NAME=ROW;ROW");
    *equals = '\0';
    keel_spec spec;
    if (find_spec(model, signature, arguments[i], &spec) == NULL)
      die("the signature has no input with this name");
    parse_rows(&spec, equals + 1, &inputs[i]);
  }
  keel_result* result = NULL;
  check(keel_run(model, signature, inputs, (size_t)count, &result));
  for (int i = 0; i < count; ++i) {
    free((void*)inputs[i].data);
    free((void*)inputs[i].dims);
    free((void*)inputs[i].row_splits);
  }
  return result;
}

// Reads the records of a file. Each record is preceded by its length (8 bytes) and a checksum (4
// bytes) and followed by another checksum. The checksums are not verified here.
static keel_result* run_records(const keel_model* model, const char* signature, const char* path) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) die("the records file cannot be opened");
  size_t count = 0, room = 16;
  keel_string* records = allocate(room, sizeof *records);
  unsigned char header[12], footer[4];
  while (fread(header, sizeof header, 1, file) == 1) {
    uint64_t size = 0;
    for (int i = 7; i >= 0; --i) size = size << 8 | header[i];
    if (size > (1U << 26)) die("a record is too long");
    if (count == room) {
      room *= 2;
      records = realloc(records, room * sizeof *records);
      if (records == NULL) die("out of memory");
    }
    char* bytes = allocate((size_t)size, 1);
    if (fread(bytes, 1, (size_t)size, file) != size || fread(footer, 4, 1, file) != 1) {
      die("the records file is truncated");
    }
    records[count++] = (keel_string){.data = bytes, .size = (size_t)size};
  }
  fclose(file);
  keel_result* result = NULL;
  check(keel_run_examples(model, signature, records, count, &result));
  for (size_t i = 0; i < count; ++i) free((void*)records[i].data);
  free(records);
  return result;
}

static void print_value(const keel_tensor* tensor, size_t i) {
  switch (tensor->dtype) {
    case KEEL_FLOAT32:
      printf(" %.9g", ((const float*)tensor->data)[i]);
      break;
    case KEEL_FLOAT64:
      printf(" %.17g", ((const double*)tensor->data)[i]);
      break;
    case KEEL_INT32:
      printf(" %" PRId32, ((const int32_t*)tensor->data)[i]);
      break;
    case KEEL_INT64:
      printf(" %" PRId64, ((const int64_t*)tensor->data)[i]);
      break;
    case KEEL_INT8:
      printf(" %d", ((const int8_t*)tensor->data)[i]);
      break;
    case KEEL_STRING: {
      const keel_string text = ((const keel_string*)tensor->data)[i];
      printf(" %.*s", (int)text.size, text.data);
      break;
    }
    default:
      printf(" %d", ((const uint8_t*)tensor->data)[i]);
  }
}

static void print_result(const keel_result* result) {
  size_t outputs;
  check(keel_result_count(result, &outputs));
  for (size_t k = 0; k < outputs; ++k) {
    keel_tensor output;
    check(keel_result_at(result, k, &output));
    printf("%s", output.name);
    const size_t count = output.data_size / value_size(output.dtype);
    for (size_t i = 0; i < count; ++i) print_value(&output, i);
    printf("\n");
  }
}

int main(int argc, char** argv) {
  if (argc < 2) die("usage: serve_c MODEL [--signature S] [--records FILE | NAME=ROW;ROW ...]");
  keel_model* model = NULL;
  check(keel_model_load(argv[1], &model));
  const char* signature = NULL;
  int next = 2;
  if (next + 1 < argc && strcmp(argv[next], "--signature") == 0) {
    signature = argv[next + 1];
    next += 2;
  }
  if (next == argc) {
    print_signatures(model);
  } else {
    keel_result* result = next + 1 < argc && strcmp(argv[next], "--records") == 0
                              ? run_records(model, signature, argv[next + 1])
                              : run_text(model, signature, argc - next, argv + next);
    print_result(result);
    keel_result_free(result);
  }
  keel_model_free(model);
  if (fflush(stdout) != 0) die("standard output cannot be written");
  return 0;
}
