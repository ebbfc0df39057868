// keel convert: converts a model or its weights to another format.
#include <iostream>

#include <keel/savedmodel/keras/internal/signature_files.h>
#include <keel/savedmodel/saved_model.h>
#include <keel/savedmodel/tool/commands.h>
#include <keel/savedmodel/tool/model_file.h>

namespace keel::tool {
namespace {

constexpr const char* kConvert = "keel convert";
constexpr int kIncomplete = 1;  // OUT lacks a part of IN

struct ConvertFlags {
  std::string in, out;
  std::optional<std::string> model;
  bool by_name = false, weights_only = false, for_keras = false;
  std::optional<std::string> table_dtype;
  int64_t min_count = 0;
};

bool is_weights_file(const std::string& path) { return path.ends_with(".weights.h5"); }

void check_suffix(const std::string& out) {
  if (!out.ends_with(".keras") && !out.ends_with(".h5") && !out.ends_with(".hdf5")) {
    throw ValueError(kConvert,
                     ": OUT must end in '.keras', '.h5', '.hdf5' or '.weights.h5', received '", out,
                     "'");
  }
}

// Returns the model of IN, or the model of --model with the weights of IN.
LoadedModel model_of(const ConvertFlags& flags) {
  const std::string& in = flags.in;
  const FileKind kind = kind_of_file(in);
  if (kind == FileKind::kCheckpoint) {
    throw ValueError(kConvert, ": ", in,
                     " is a checkpoint, which only the program that wrote it can restore; restore "
                     "it there and save the model");
  }
  if (!flags.model) {
    if (flags.by_name) {
      throw ValueError(kConvert, ": --by_name is for weights; pass the model with --model");
    }
    if (!has_model(kind)) {
      throw ValueError(kConvert, ": ", in, " contains only weights; pass the model with --model");
    }
    return load_whole_model(kConvert, in);
  }
  LoadedModel loaded = load_whole_model(kConvert, *flags.model);
  load_weights_into(kConvert, loaded.model, in, flags.by_name);
  return loaded;
}

int run(const ConvertFlags& flags) {
  const std::string& out = flags.out;
  check_suffix(out);
  const LoadedModel loaded = model_of(flags);
  int status = 0;
  if (is_weights_file(out) || flags.weights_only) {
    if (flags.table_dtype) {
      throw ValueError(kConvert,
                       ": --table_dtype is only for whole models; pass the model with --model");
    }
    save_weights(loaded.model, out, {.min_count = flags.min_count});
  } else {
    if (!loaded.not_compiled.empty()) {
      status = kIncomplete;
      std::cerr << "keel convert: the training configuration was dropped: " << loaded.not_compiled
                << '\n';
    }
    save_model(loaded.model, out,
               {.include_optimizer = loaded.model->compiled(),
                .for_keras = flags.for_keras,
                .table_dtype = flags.table_dtype.value_or("float32"),
                .signatures = read_signature_specs(flags.model.value_or(flags.in)),
                .min_count = flags.min_count});
  }
  std::cout << "wrote " << out << '\n';
  return status;
}

}  // namespace

void add_convert(CommandLine& keel) {
  CommandLine& command = keel.add_command(
      "convert", "Writes a model or weights in the format that the suffix of OUT selects.",
      "The optimizer state and the signatures of IN are preserved. The exit status is 1 if OUT is\n"
      "written without the training configuration of IN because it cannot be used.");
  const auto flags = std::make_shared<ConvertFlags>();
  command.argument("IN", &flags->in, "model file, or weights for the model of --model");
  command.argument("OUT", &flags->out, "model (.keras, .h5, .hdf5) or weights (.weights.h5)");
  command.option("--model", &flags->model,
                 "file with a model of the same layers, if IN contains only weights",
                 {.placeholder = "FILE"});
  command.option("--by_name", &flags->by_name, "match layers of the weights by name (.h5)");
  command.option("--weights_only", &flags->weights_only,
                 "write only weights to OUT, also if it is a .h5 file");
  command.option("--for_keras", &flags->for_keras, "replace layers that Keras does not have");
  command.option("--table_dtype", &flags->table_dtype, "float32, or int8 for tables of 8-bit codes",
                 {.placeholder = "DTYPE=float32"});
  command.option("--min_count", &flags->min_count,
                 "leave out ids of tables for unbounded ids that have occurred less often",
                 {.limits = {.least = 0}});
  command.set_run([flags] { return run(*flags); });
}

}  // namespace keel::tool
