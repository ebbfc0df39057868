#include <keel/distribute/dynamic/dynamic_vocabulary.h>

#include <cmath>
#include <string_view>

#include <keel/framework/base/errors.h>

namespace keel {
namespace {

// Bounds the rows and cells of one table, so that products with their sizes do not overflow.
constexpr int64_t kMostRows = int64_t{1} << 31;

// Throws the errors of one table's options.
class VocabularyCheck {
 public:
  explicit VocabularyCheck(const std::string& table) : table_(table) {}

  template <class T>
  void require(bool holds, const char* option, const char* condition, const T& received) const {
    if (holds) return;
    throw ValueError("DynamicVocabulary of table '", table_, "': ", option, " must ", condition,
                     ", received ", received);
  }
  [[noreturn]] void refuse(const std::string& problem) const {
    throw ValueError("DynamicVocabulary of table '", table_, "': ", problem);
  }

 private:
  const std::string& table_;
};

void check_admission(const VocabularyCheck& check, const Admission& admission) {
  switch (admission.kind) {
    case Admission::Kind::kAlways:
      return;
    case Admission::Kind::kCount:
      check.require(admission.occurrences >= 1, "admission: count", "be at least 1",
                    admission.occurrences);
      check.require(admission.counts.window >= 0, "admission: window", "not be negative",
                    admission.counts.window);
      check.require(admission.counts.max_pending >= 0, "admission: max_pending", "not be negative",
                    admission.counts.max_pending);
      return;
    case Admission::Kind::kSketch:
      check.require(admission.occurrences >= 1 && admission.occurrences <= 256,
                    "admission: the count of a sketch", "be 1 ... 256", admission.occurrences);
      check.require(admission.cells.width >= 1 && admission.cells.width <= kMostRows,
                    "admission: width", "be 1 ... 2^31", admission.cells.width);
      check.require(admission.cells.halve_every >= 0, "admission: halve_every", "not be negative",
                    admission.cells.halve_every);
      return;
    case Admission::Kind::kProbability:
      check.require(admission.share > 0 && admission.share <= 1, "admission: probability",
                    "be in (0, 1]", admission.share);
  }
}

void check_eviction(const VocabularyCheck& check, const DynamicVocabulary& dynamic) {
  const EvictionOptions& options = dynamic.eviction.options;
  const bool ranks = dynamic.eviction.policy != Eviction::Policy::kNone;
  check.require(options.ttl >= 0, "eviction: ttl", "not be negative", options.ttl);
  check.require(options.min_l2_norm >= 0, "eviction: min_l2_norm", "not be negative or NaN",
                options.min_l2_norm);
  check.require(options.interval >= 1, "eviction: interval", "be at least 1", options.interval);
  check.require(options.halve_every >= 0, "eviction: halve_every", "not be negative",
                options.halve_every);
  if (options.halve_every > 0 && dynamic.eviction.policy != Eviction::Policy::kLfu) {
    check.refuse("eviction: halve_every applies to lfu only; use Eviction::lfu or leave it 0");
  }
  if (ranks && dynamic.capacity == 0) {
    check.refuse("eviction: lru and lfu require a capacity; set `capacity`");
  }
  if (dynamic.on_full == OnFull::kRefuse && (ranks || dynamic.capacity == 0)) {
    check.refuse("on_full: kRefuse requires a capacity and excludes lru and lfu");
  }
}

// The names of enumerators, in their order.
constexpr const char* kKeyTypes[] = {"int64", "string"};
constexpr const char* kClocks[] = {"step", "user"};
constexpr const char* kOnFull[] = {"error", "refuse"};
constexpr const char* kAdmissions[] = {"always", "count", "sketch", "probability"};
constexpr const char* kPolicies[] = {"none", "lru", "lfu"};
constexpr const char* kNotAdmitted[] = {"zero", "ignore", "default_row", "hashed"};

template <class Enum, size_t kCount>
Enum enumerator(const char* const (&names)[kCount], const std::string& name, const char* option) {
  for (size_t i = 0; i < kCount; ++i) {
    if (name == names[i]) return static_cast<Enum>(i);
  }
  throw ValueError("DynamicVocabulary: unknown ", option, " '", name, "'");
}

// Calls fn(value) if `config` has the key.
template <class Fn>
void if_present(const Config& config, const char* key, const Fn& fn) {
  const Config* const found = config.find(key);
  if (found != nullptr && !found->is_null()) fn(*found);
}

void read_number(const Config& config, const char* key, int64_t& to) {
  if_present(config, key, [&](const Config& value) { to = value.integer(); });
}

Config encode_admission(const Admission& admission) {
  Config out = Config::dict({{"type", kAdmissions[static_cast<size_t>(admission.kind)]}});
  if (admission.kind == Admission::Kind::kCount) {
    out.set("count", admission.occurrences);
    out.set("window", admission.counts.window);
    out.set("max_pending", admission.counts.max_pending);
  } else if (admission.kind == Admission::Kind::kSketch) {
    out.set("count", admission.occurrences);
    out.set("width", admission.cells.width);
    out.set("halve_every", admission.cells.halve_every);
  } else if (admission.kind == Admission::Kind::kProbability) {
    out.set("probability", admission.share);
  }
  return out;
}

Admission decode_admission(const Config& config) {
  config_internal::reject_unknown_keys(
      config, {"type", "count", "window", "max_pending", "width", "halve_every", "probability"},
      "Admission");
  Admission out = {
      .kind = enumerator<Admission::Kind>(kAdmissions, config["type"].string(), "admission")};
  read_number(config, "count", out.occurrences);
  read_number(config, "window", out.counts.window);
  read_number(config, "max_pending", out.counts.max_pending);
  read_number(config, "width", out.cells.width);
  read_number(config, "halve_every", out.cells.halve_every);
  if_present(config, "probability", [&](const Config& p) { out.share = p.number(); });
  return out;
}

Config encode_eviction(const Eviction& eviction) {
  return Config::dict({{"policy", kPolicies[static_cast<size_t>(eviction.policy)]},
                       {"ttl", eviction.options.ttl},
                       {"min_l2_norm", eviction.options.min_l2_norm},
                       {"interval", eviction.options.interval},
                       {"halve_every", eviction.options.halve_every}});
}

Eviction decode_eviction(const Config& config) {
  config_internal::reject_unknown_keys(
      config, {"policy", "ttl", "min_l2_norm", "interval", "halve_every"}, "Eviction");
  Eviction out;
  if_present(config, "policy", [&](const Config& name) {
    out.policy = enumerator<Eviction::Policy>(kPolicies, name.string(), "eviction policy");
  });
  read_number(config, "ttl", out.options.ttl);
  if_present(config, "min_l2_norm",
             [&](const Config& norm) { out.options.min_l2_norm = norm.number(); });
  read_number(config, "interval", out.options.interval);
  read_number(config, "halve_every", out.options.halve_every);
  return out;
}

Config encode_not_admitted(const NotAdmitted& rows) {
  Config out = Config::dict({{"type", kNotAdmitted[static_cast<size_t>(rows.kind)]}});
  if (rows.kind == NotAdmitted::Kind::kHashed) out.set("rows", rows.rows);
  if (rows.initializer) out.set("initializer", encode(*rows.initializer));
  return out;
}

NotAdmitted decode_not_admitted(const Config& config) {
  config_internal::reject_unknown_keys(config, {"type", "rows", "initializer"}, "NotAdmitted");
  NotAdmitted out = {
      .kind = enumerator<NotAdmitted::Kind>(kNotAdmitted, config["type"].string(), "not_admitted")};
  read_number(config, "rows", out.rows);
  if_present(config, "initializer",
             [&](const Config& value) { decode(value, out.initializer.emplace()); });
  return out;
}

// Throws unless one row of these initial values can be computed alone.
void check_row_initializer(const VocabularyCheck& check, const Initializer& initializer,
                           const std::string& what) {
  const std::string name = initializer.function().class_name();
  const std::string_view view = name;
  const Config config = initializer.function().get_config();
  const Config* const mode = config.find("mode");
  const bool scales = view.starts_with("Glorot") || view.starts_with("He") ||
                      view.starts_with("Lecun") ||
                      (name == "VarianceScaling" && mode != nullptr && mode->string() != "fan_out");
  if (scales || name == "Orthogonal" || name == "Identity") {
    check.refuse(what + " " + name +
                 " depends on the number of rows; use truncated_normal, random_uniform or "
                 "variance_scaling with mode fan_out");
  }
}

}  // namespace

void check(const DynamicVocabulary& dynamic, const std::string& table) {
  const VocabularyCheck options(table);
  options.require(dynamic.capacity >= 0, "capacity", "not be negative", dynamic.capacity);
  options.require(dynamic.headroom >= 0 && dynamic.headroom < 1, "headroom", "be in [0, 1)",
                  dynamic.headroom);
  check_admission(options, dynamic.admission);
  check_eviction(options, dynamic);
  if (dynamic.not_admitted.kind == NotAdmitted::Kind::kHashed) {
    options.require(dynamic.not_admitted.rows >= 1 && dynamic.not_admitted.rows <= kMostRows,
                    "not_admitted: rows of hashed", "be 1 ... 2^31", dynamic.not_admitted.rows);
  }
}

void check_row_initializers(const DynamicVocabulary& dynamic, const Initializer& initializer,
                            const std::string& table) {
  const VocabularyCheck check(table);
  const auto is_row_id = [](const Initializer& of) {
    return of.function().class_name() == "RowIdInitializer";
  };
  check_row_initializer(check, initializer, "initializer");
  if (is_row_id(initializer) && dynamic.key == KeyType::kString) {
    check.refuse("initializer RowIdInitializer requires int64 ids; use another initializer");
  }
  if (dynamic.not_admitted.fallback_rows() == 0) return;
  const Initializer& fallback = dynamic.not_admitted.initializer.value_or(initializer);
  check_row_initializer(check, fallback, "initializer of fallback rows");
  if (is_row_id(fallback)) {
    check.refuse(
        "initializer RowIdInitializer has no values for fallback rows; pass an initializer to "
        "NotAdmitted");
  }
}

Config encode(const DynamicVocabulary& dynamic) {
  return Config::dict({{"key", kKeyTypes[static_cast<size_t>(dynamic.key)]},
                       {"capacity", dynamic.capacity},
                       {"headroom", dynamic.headroom},
                       {"clock", kClocks[static_cast<size_t>(dynamic.clock)]},
                       {"admission", encode_admission(dynamic.admission)},
                       {"eviction", encode_eviction(dynamic.eviction)},
                       {"not_admitted", encode_not_admitted(dynamic.not_admitted)},
                       {"on_full", kOnFull[static_cast<size_t>(dynamic.on_full)]}});
}

void decode(const Config& config, std::optional<DynamicVocabulary>& dynamic) {
  dynamic.reset();
  if (config.is_null()) return;
  config_internal::reject_unknown_keys(
      config,
      {"key", "capacity", "headroom", "clock", "admission", "eviction", "not_admitted", "on_full"},
      "DynamicVocabulary");
  DynamicVocabulary out;
  if_present(config, "key", [&](const Config& name) {
    out.key = enumerator<KeyType>(kKeyTypes, name.string(), "key type");
  });
  read_number(config, "capacity", out.capacity);
  if_present(config, "headroom", [&](const Config& share) { out.headroom = share.number(); });
  if_present(config, "clock", [&](const Config& name) {
    out.clock = enumerator<Clock>(kClocks, name.string(), "clock");
  });
  if_present(config, "admission",
             [&](const Config& value) { out.admission = decode_admission(value); });
  if_present(config, "eviction",
             [&](const Config& value) { out.eviction = decode_eviction(value); });
  if_present(config, "not_admitted",
             [&](const Config& value) { out.not_admitted = decode_not_admitted(value); });
  if_present(config, "on_full", [&](const Config& name) {
    out.on_full = enumerator<OnFull>(kOnFull, name.string(), "on_full");
  });
  dynamic = std::move(out);
}

}  // namespace keel
