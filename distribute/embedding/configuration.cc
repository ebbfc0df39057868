#include <keel/distribute/embedding/configuration.h>

#include <absl/strings/str_cat.h>
#include <limits>
#include <set>

#include <keel/distribute/embedding/optimization_parameters_internal.h>
#include <keel/framework/base/errors.h>
#include <keel/framework/base/internal/proto_text.h>

#include "distribute/embedding/tpu_embedding_configuration.descriptors.h"
#include "distribute/embedding/tpu_embedding_configuration.pb.h"

namespace keel::distribute {
namespace {

using Record = proto::TPUEmbeddingConfiguration;

proto::TableDescriptor::Combiner write(Combiner combiner) {
  switch (combiner) {
    case Combiner::kSum:
      return proto::TableDescriptor::SUM;
    case Combiner::kSqrtN:
      return proto::TableDescriptor::SQRTN;
    case Combiner::kMean:
      break;
  }
  return proto::TableDescriptor::MEAN;
}

Combiner read(proto::TableDescriptor::Combiner combiner) {
  switch (combiner) {
    case proto::TableDescriptor::MEAN:
      return Combiner::kMean;
    case proto::TableDescriptor::SUM:
      return Combiner::kSum;
    case proto::TableDescriptor::SQRTN:
      return Combiner::kSqrtN;
    default:
      throw ValueError("EngineConfiguration: the combiner must be mean, sum or sqrtn, received ",
                       static_cast<int>(combiner));
  }
}

proto::TableDescriptor::Storage write(kernels::StorageType storage) {
  switch (storage) {
    case kernels::StorageType::kBFloat16:
      return proto::TableDescriptor::BFLOAT16;
    case kernels::StorageType::kFloat16:
      return proto::TableDescriptor::FLOAT16;
    case kernels::StorageType::kFloat32:
      break;
  }
  return proto::TableDescriptor::FLOAT32;
}

kernels::StorageType read(proto::TableDescriptor::Storage storage) {
  switch (storage) {
    case proto::TableDescriptor::FLOAT32:
      return kernels::StorageType::kFloat32;
    case proto::TableDescriptor::BFLOAT16:
      return kernels::StorageType::kBFloat16;
    case proto::TableDescriptor::FLOAT16:
      return kernels::StorageType::kFloat16;
    default:
      throw ValueError(
          "EngineConfiguration: storage must be float32, bfloat16 or float16, received ",
          static_cast<int>(storage));
  }
}

// Throws ValueError if the product of `sizes`, none of them negative, overflows int64.
void check_product(const std::string& what, std::span<const int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes) {
    if (size > 0 && product > std::numeric_limits<int64_t>::max() / size) {
      throw ValueError("EngineConfiguration: ", what,
                       " is too large: its size overflows 64 bits; use fewer rows or columns");
    }
    product *= size;
  }
}

// The names of enumerators are those of encode(DynamicVocabulary).
proto::DynamicVocabulary write(const DynamicVocabulary& dynamic) {
  proto::DynamicVocabulary p;
  const Config config = encode(dynamic);
  p.set_key(config["key"].string());
  p.set_headroom(dynamic.headroom);
  p.set_clock(config["clock"].string());
  p.set_on_full(config["on_full"].string());
  const Admission& admission = dynamic.admission;
  p.set_admission(config["admission"]["type"].string());
  p.set_admission_count(admission.occurrences);
  p.set_admission_window(admission.counts.window);
  p.set_admission_max_pending(admission.counts.max_pending);
  p.set_sketch_width(admission.cells.width);
  p.set_sketch_halve_every(admission.cells.halve_every);
  p.set_admission_probability(admission.share);
  const EvictionOptions& eviction = dynamic.eviction.options;
  p.set_eviction(config["eviction"]["policy"].string());
  p.set_eviction_ttl(eviction.ttl);
  p.set_eviction_min_l2_norm(eviction.min_l2_norm);
  p.set_eviction_interval(eviction.interval);
  p.set_eviction_halve_every(eviction.halve_every);
  p.set_not_admitted(config["not_admitted"]["type"].string());
  p.set_fallback_rows(dynamic.not_admitted.rows);
  return p;
}

DynamicVocabulary read(const proto::DynamicVocabulary& p, const EngineTable& table) {
  const Config config = Config::dict(
      {{"key", p.key()},
       {"capacity", table.rows},
       {"headroom", p.headroom()},
       {"clock", p.clock()},
       {"admission", Config::dict({{"type", p.admission()},
                                   {"count", p.admission_count()},
                                   {"window", p.admission_window()},
                                   {"max_pending", p.admission_max_pending()},
                                   {"width", p.sketch_width()},
                                   {"halve_every", p.sketch_halve_every()},
                                   {"probability", p.admission_probability()}})},
       {"eviction", Config::dict({{"policy", p.eviction()},
                                  {"ttl", p.eviction_ttl()},
                                  {"min_l2_norm", p.eviction_min_l2_norm()},
                                  {"interval", p.eviction_interval()},
                                  {"halve_every", p.eviction_halve_every()}})},
       {"not_admitted", Config::dict({{"type", p.not_admitted()}, {"rows", p.fallback_rows()}})},
       {"on_full", p.on_full()}});
  std::optional<DynamicVocabulary> out;
  decode(config, out);
  keel::check(*out, table.name);
  return *out;
}

EngineTable read(const proto::TableDescriptor& p) {
  EngineTable table = {.name = p.name(), .rows = p.vocabulary_size(), .dim = p.dimension()};
  if (p.has_dynamic()) table.dynamic = read(p.dynamic(), table);
  if (table.rows < (table.dynamic ? 0 : 1) || table.dim < 1 || p.num_features() < 0) {
    throw ValueError("EngineConfiguration: table '", table.name,
                     "' must have positive sizes, received ", table.rows, " rows of ", table.dim,
                     " and ", p.num_features(), " features");
  }
  const int64_t sizes[] = {table.rows, table.dim, static_cast<int64_t>(sizeof(float))};
  check_product("table '" + table.name + "'", sizes);
  table.combiner = read(p.combiner());
  table.storage = read(p.storage());
  table.num_features = p.num_features();
  read_optimization_parameters(p.optimization_parameters(), table);
  return table;
}

EngineFeature read(const proto::FeatureDescriptor& p, int index, size_t tables) {
  if (p.table_id() < 0 || p.table_id() >= static_cast<int64_t>(tables)) {
    throw ValueError("EngineConfiguration: feature ", index, " must refer to one of ", tables,
                     " tables, received table_id ", p.table_id());
  }
  const Shape shape(std::vector<int64_t>(p.input_shape().begin(), p.input_shape().end()));
  std::vector<int64_t> known(shape.dims().begin(), shape.dims().end());
  std::erase(known, kUnknown);
  check_product(absl::StrCat("input_shape of feature ", index), known);
  return {.name = p.name(), .table_id = p.table_id(), .input_shape = shape};
}

void check(const Record& p) {
  if (p.num_hosts() < 1 || p.num_tensor_cores() < 1 || p.num_tensor_cores() % p.num_hosts() != 0) {
    throw ValueError(
        "EngineConfiguration: num_tensor_cores must be a positive multiple of num_hosts, received ",
        p.num_tensor_cores(), " cores on ", p.num_hosts(), " hosts");
  }
  if (p.batch_size_per_tensor_core() < 0) {
    throw ValueError(
        "EngineConfiguration: batch_size_per_tensor_core must not be negative, "
        "received ",
        p.batch_size_per_tensor_core());
  }
  if (!Record::Mode_IsValid(p.mode()) || !Record::ShardingStrategy_IsValid(p.sharding_strategy())) {
    throw ValueError("EngineConfiguration: unknown mode ", static_cast<int>(p.mode()),
                     " or unknown sharding_strategy ", static_cast<int>(p.sharding_strategy()),
                     "; use the values of the message definition");
  }
}

// Checks that names are distinct and tags are 0 ... k - 1 without gaps.
void check_tables(const std::vector<EngineTable>& tables) {
  std::set<std::string> names;
  std::set<int> tags;
  for (const EngineTable& table : tables) {
    if (!names.insert(table.name).second) {
      throw ValueError("EngineConfiguration: two tables are named '", table.name,
                       "'; rename one of them");
    }
    if (table.learning_rate_tag) tags.insert(*table.learning_rate_tag);
  }
  if (!tags.empty() &&
      (*tags.begin() != 0 || *tags.rbegin() != static_cast<int>(tags.size()) - 1)) {
    throw ValueError("EngineConfiguration: the tags of learning rates must be 0 to ",
                     tags.size() - 1, ", received ", *tags.begin(), " to ", *tags.rbegin());
  }
}

Record parsed(const std::string& record) {
  Record out;
  if (!out.ParseFromString(record)) {
    throw ValueError("EngineConfiguration: received ", record.size(),
                     " bytes that are not a serialized TPUEmbeddingConfiguration; pass the bytes "
                     "of SerializeAsString()");
  }
  return out;
}

}  // namespace

std::string serialize(const EngineConfiguration& configuration) {
  Record out;
  for (const EngineTable& table : configuration.tables) {
    proto::TableDescriptor& p = *out.add_table_descriptor();
    p.set_name(table.name);
    p.set_vocabulary_size(table.rows);
    p.set_dimension(table.dim);
    p.set_num_features(table.num_features);
    p.set_combiner(write(table.combiner));
    p.set_storage(write(table.storage));
    if (table.dynamic) *p.mutable_dynamic() = write(*table.dynamic);
    *p.mutable_optimization_parameters() = write_optimization_parameters(table);
  }
  for (const EngineFeature& feature : configuration.features) {
    proto::FeatureDescriptor& p = *out.add_feature_descriptor();
    p.set_name(feature.name);
    p.set_table_id(feature.table_id);
    for (int64_t dim : feature.input_shape.dims()) p.add_input_shape(dim);
  }
  out.set_mode(Record::TRAINING);
  out.set_batch_size_per_tensor_core(configuration.batch_size_per_tensor_core);
  out.set_num_hosts(configuration.num_hosts);
  out.set_num_tensor_cores(configuration.num_tensor_cores);
  out.set_sharding_strategy(configuration.sharding_strategy == ShardingStrategy::kMod
                                ? Record::MOD
                                : Record::DIV_DEFAULT);
  out.set_pipeline_execution_with_tensor_core(configuration.pipeline_execution_with_tensor_core);
  out.set_profile_data_directory(configuration.profile_data_directory);
  return out.SerializeAsString();
}

EngineConfiguration parse_engine_configuration(const std::string& record) {
  const Record p = parsed(record);
  check(p);
  EngineConfiguration out = {
      .tables = {},
      .features = {},
      .batch_size_per_tensor_core = p.batch_size_per_tensor_core(),
      .num_hosts = p.num_hosts(),
      .num_tensor_cores = p.num_tensor_cores(),
      .sharding_strategy =
          p.sharding_strategy() == Record::MOD ? ShardingStrategy::kMod : ShardingStrategy::kDiv,
      .pipeline_execution_with_tensor_core = p.pipeline_execution_with_tensor_core(),
      .profile_data_directory = p.profile_data_directory()};
  for (const proto::TableDescriptor& table : p.table_descriptor()) {
    out.tables.push_back(read(table));
  }
  check_tables(out.tables);
  for (const proto::FeatureDescriptor& feature : p.feature_descriptor()) {
    const auto index = static_cast<int>(out.features.size());
    out.features.push_back(read(feature, index, out.tables.size()));
  }
  return out;
}

std::string to_text(const std::string& record) {
  parsed(record);  // checks it
  return internal::text_from_wire_format(descriptors::tpu_embedding_configuration,
                                         "keel.distribute.proto.TPUEmbeddingConfiguration", record);
}

}  // namespace keel::distribute
