// keel diff: prints the differences of two files.
#include <absl/strings/str_cat.h>
#include <algorithm>
#include <iostream>
#include <map>

#include <keel/framework/base/internal/text.h>
#include <keel/savedmodel/keras/internal/keras_compile.h>
#include <keel/savedmodel/keras/internal/signature_files.h>
#include <keel/savedmodel/saved_model.h>
#include <keel/savedmodel/tool/commands.h>
#include <keel/savedmodel/tool/difference.h>
#include <keel/savedmodel/tool/model_file.h>
#include <keel/savedmodel/tool/stored_table.h>

namespace keel::tool {
namespace {

constexpr const char* kDiff = "keel diff";

class Report {
 public:
  template <class... Args>
  void add(const Args&... what) {
    std::cout << str(what...) << '\n';
    ++lines_;
  }
  int64_t lines() const { return lines_; }

 private:
  int64_t lines_ = 0;
};

std::string shortened(const Config* config) {
  constexpr size_t kLongest = 80;
  const std::string text = config == nullptr ? "nothing" : to_json(*config);
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

void compare_configs(const std::string& path, const Config* a, const Config* b, Report& report) {
  if (a != nullptr && b != nullptr) {
    if (*a == *b) return;
    if (a->is_number() && b->is_number() && a->number() == b->number()) return;
    if (a->is_dict() && b->is_dict()) {
      for (const auto& [key, value] : a->entries()) {
        compare_configs(absl::StrCat(path, "/", key), &value, b->find(key), report);
      }
      for (const auto& [key, value] : b->entries()) {
        if (a->find(key) == nullptr)
          compare_configs(absl::StrCat(path, "/", key), nullptr, &value, report);
      }
      return;
    }
    if (a->is_list() && b->is_list() && a->items().size() == b->items().size()) {
      for (size_t i = 0; i < a->items().size(); ++i) {
        compare_configs(absl::StrCat(path, "/", i), &a->items()[i], &b->items()[i], report);
      }
      return;
    }
  }
  report.add(path, ": ", shortened(a), " and ", shortened(b));
}

void compare_values(const std::string& name, const StoredValue& a, const StoredValue& b,
                    double atol, Report& report) {
  const Tensor x = a.get(), y = b.get();
  if (x.shape() != y.shape() || x.dtype() != y.dtype()) {
    return report.add(name, ": ", x.dtype(), " ", x.shape(), " and ", y.dtype(), " ", y.shape());
  }
  const Difference found = difference(x, y, atol);
  if (found.count == 0) return;
  report.add(name, ": ", found.count, " of ", x.size(), " values differ, by up to ",
             number_text(found.largest), " at ", found.at);
}

// Compares values by name, in the order of A and then of B.
void compare_lists(const char* part, const std::vector<StoredValue>& a,
                   const std::vector<StoredValue>& b, double atol, Report& report) {
  std::map<std::string, const StoredValue*> others;
  for (const StoredValue& value : b) others.emplace(value.name, &value);
  std::map<std::string, bool> seen;
  for (const StoredValue& value : a) {
    const std::string name = absl::StrCat(part, " ", value.name);
    seen[value.name] = true;
    const auto at = others.find(value.name);
    if (at == others.end()) {
      report.add(name, ": only in A");
    } else {
      compare_values(name, value, *at->second, atol, report);
    }
  }
  for (const StoredValue& value : b) {
    if (!seen.contains(value.name)) report.add(part, " ", value.name, ": only in B");
  }
}

void compare_stored(const StoredValues& a, const StoredValues& b, double atol, Report& report) {
  compare_lists("weight", a.weights, b.weights, atol, report);
  compare_lists("optimizer", a.optimizer, b.optimizer, atol, report);
}

void compare_tables(const std::vector<StoredTable>& a, const std::vector<StoredTable>& b,
                    double atol, Report& report) {
  for (const std::string& line : table_differences(a, b, atol)) report.add(line);
}

// Returns the training configuration in one form, because formats name losses differently.
Config training_of(const Model& model) {
  return model.compiled() ? to_training_config(model.get_compile_config()) : Config();
}

void compare_models(const std::string& a, const std::string& b, double atol, Report& report) {
  const LoadedModel x = load_whole_model(kDiff, a), y = load_whole_model(kDiff, b);
  if (x.model->class_name() != y.model->class_name()) {
    report.add("model: ", x.model->class_name(), " and ", y.model->class_name());
  } else {
    const Config config_a = x.model->get_config(), config_b = y.model->get_config();
    compare_configs("config", &config_a, &config_b, report);
  }
  if (x.not_compiled.empty() && y.not_compiled.empty()) {
    const Config compiled_a = training_of(*x.model), compiled_b = training_of(*y.model);
    compare_configs("training", &compiled_a, &compiled_b, report);
  }
  // A configuration that cannot be read may differ from the other one.
  if (!x.not_compiled.empty()) report.add("training in A cannot be read: ", x.not_compiled);
  if (!y.not_compiled.empty()) report.add("training in B cannot be read: ", y.not_compiled);
  const Config served_a = to_config(read_signature_specs(a));
  const Config served_b = to_config(read_signature_specs(b));
  compare_configs("signatures", &served_a, &served_b, report);
  StoredValues of_x = values_of(*x.model), of_y = values_of(*y.model);
  const bool x_is_new = has_new_optimizer(*x.model);
  if (x_is_new != has_new_optimizer(*y.model)) {
    report.add("optimizer in ", x_is_new ? "A" : "B", ": ", kNewOptimizer);
    of_x.optimizer.clear();
    of_y.optimizer.clear();
  }
  compare_stored(of_x, of_y, atol, report);
  compare_tables(tables_of(*x.model), tables_of(*y.model), atol, report);
}

// Compares the weights of two files, using the model in one of them to name the other's weights.
void compare_with_model(const std::string& with_model, const std::string& weights, bool model_first,
                        double atol, Report& report) {
  const ModelHandle framed = load_model(with_model, {.compile = false});
  const ModelHandle whole = load_model(with_model, {.compile = false});
  const StoredValues of_model = values_of(*whole);
  load_weights(framed, weights);
  const StoredValues of_weights = values_of(*framed);
  compare_stored(model_first ? of_model : of_weights, model_first ? of_weights : of_model, atol,
                 report);
  compare_tables(tables_of(model_first ? *whole : *framed),
                 tables_of(model_first ? *framed : *whole), atol, report);
}

struct DiffFlags {
  std::string a, b;
  double atol = 0;
};

int run(const DiffFlags& flags) {
  const std::string a = file_of(flags.a), b = file_of(flags.b);
  const double atol = flags.atol;
  const FileKind kind_a = kind_of_file(a), kind_b = kind_of_file(b);
  Report report;
  if (has_model(kind_a) && has_model(kind_b)) {
    compare_models(a, b, atol, report);
  } else if (kind_a == kind_b) {
    StoredValues of_a = values_of(a, kind_a), of_b = values_of(b, kind_b);
    const std::vector<StoredTable> tables_a = take_tables(of_a), tables_b = take_tables(of_b);
    compare_stored(of_a, of_b, atol, report);
    compare_tables(tables_a, tables_b, atol, report);
  } else if (kind_a == FileKind::kCheckpoint || kind_b == FileKind::kCheckpoint) {
    throw ValueError(kDiff, ": a checkpoint can only be compared with a checkpoint, received ",
                     describe(kind_a), " and ", describe(kind_b),
                     "; restore it and save the model first");
  } else if (has_model(kind_a) || has_model(kind_b)) {
    const bool model_first = has_model(kind_a);
    compare_with_model(model_first ? a : b, model_first ? b : a, model_first, atol, report);
  } else {
    throw ValueError(kDiff, ": weights in two formats cannot be matched without a model; ",
                     "compare each with a model file");
  }
  if (report.lines() == 0) std::cout << "no differences\n";
  return report.lines() == 0 ? 0 : 1;
}

}  // namespace

void add_diff(CommandLine& keel) {
  CommandLine& command = keel.add_command(
      "diff", "Lists the differences of two files.",
      "Compares the configurations, training configurations, signatures, weights and optimizer\n"
      "states of two models, also in different formats; weights with the weights of a model; or\n"
      "two checkpoints. Tables for unbounded ids are compared by id. Prints one line for each\n"
      "difference and for each training configuration that cannot be read. The exit status is 1\n"
      "if any line is printed.");
  const auto flags = std::make_shared<DiffFlags>();
  command.argument("A", &flags->a, "model, weights or checkpoint");
  command.argument("B", &flags->b, "file to compare with");
  command.option("--atol", &flags->atol, "largest allowed difference of values",
                 {.limits = {.least = 0}});
  command.set_run([flags] { return run(*flags); });
}

}  // namespace keel::tool
