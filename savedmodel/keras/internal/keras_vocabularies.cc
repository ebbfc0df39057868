#include <keel/savedmodel/keras/internal/keras_vocabularies.h>

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <algorithm>
#include <charconv>
#include <map>
#include <vector>

#include <keel/layers/internal/naming.h>

namespace keel {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 30;

const Config* find(const Config& config, const char* key) {
  return config.is_dict() ? config.find(key) : nullptr;
}

bool is_string(const Config* config, std::string_view text) {
  return config != nullptr && config->is_string() && config->string() == text;
}

// Returns the lines of a text without empty lines at the end, because a file may end in line feeds.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    out.push_back(std::move(line));
    begin = end + 1;
  }
  while (!out.empty() && out.back().empty()) out.pop_back();
  return out;
}

class Vocabularies {
 public:
  Vocabularies(const ZipFile& archive, const Hdf5File& weights)
      : archive_(archive), weights_(weights) {}

  // Returns the config of an object, whose weights are in `group`, with its vocabulary.
  Config filled(const Config& object, const std::string& group) const {
    const Config* const class_name = find(object, "class_name");
    const Config* const config = find(object, "config");
    if (class_name == nullptr || !class_name->is_string() || config == nullptr) return object;
    Config out = object;
    if (is_string(class_name, "StringLookup") || is_string(class_name, "IntegerLookup")) {
      out.set("config", lookup(*config, group, group, is_string(class_name, "IntegerLookup")));
    } else if (is_string(class_name, "TextVectorization")) {
      out.set("config", lookup(*config, group, group + "_lookup_layer/", false));
    } else if (is_string(class_name, "FeatureSpace")) {
      out.set("config", features(*config, group));
    } else if (const Config* layers = find(*config, "layers"); layers && layers->is_list()) {
      Config inner = *config;
      inner.set("layers", all_filled(layers->items(), group + "layers/"));
      out.set("config", std::move(inner));
    }
    return out;
  }

 private:
  // Fills the preprocessors of a FeatureSpace, which Keras keeps in the order of the features.
  Config features(Config config, const std::string& group) const {
    const Config* const found = find(config, "features");
    if (found == nullptr || !found->is_dict()) return config;
    Config::List preprocessors;
    for (const auto& [name, feature] : found->entries()) {
      const Config* const own = find(feature, "config");
      const Config* const preprocessor = own == nullptr ? nullptr : find(*own, "preprocessor");
      preprocessors.push_back(preprocessor == nullptr ? Config() : *preprocessor);
    }
    preprocessors = all_filled(preprocessors, group + "preprocessors/");
    Config out = Config::dict();
    size_t i = 0;
    for (const auto& [name, feature] : found->entries()) {
      Config filled = feature;
      if (const Config& preprocessor = preprocessors[i++]; !preprocessor.is_null()) {
        Config own = feature["config"];
        own.set("preprocessor", preprocessor);
        filled.set("config", std::move(own));
      }
      out.set(name, std::move(filled));
    }
    config.set("features", std::move(out));
    return config;
  }

  // Returns the layers with their vocabularies. `folder` contains their groups.
  Config::List all_filled(const Config::List& layers, const std::string& folder) const {
    Config::List out;
    std::map<std::string, int> used;
    for (const Config& layer : layers) {
      const Config* const class_name = find(layer, "class_name");
      std::string name;
      if (class_name != nullptr && class_name->is_string()) {
        name = to_snake_case(class_name->string());
      }
      if (const int k = used[name]++; k > 0) name += "_" + std::to_string(k);
      out.push_back(filled(layer, absl::StrCat(folder, name, "/")));
    }
    return out;
  }

  // Returns the config with the words in the assets of `group` and the weights in `weights_group`.
  Config lookup(Config config, const std::string& group, const std::string& weights_group,
                bool integers) const {
    const Config* const own = find(config, "vocabulary");
    std::string entry = "assets/" + group + "vocabulary.txt";
    // Archives written on Windows may contain backslashes.
    if (!archive_.has(entry)) std::ranges::replace(entry, '/', '\\');
    if (!config.is_dict() || (own != nullptr && own->is_list()) || !archive_.has(entry)) {
      return config;
    }
    Config::List words;
    for (std::string& line : lines_of(archive_.read(entry, kMaxBytes))) {
      words.push_back(integers ? Config(integer(entry, line)) : Config(std::move(line)));
    }
    if (is_string(find(config, "output_mode"), "tf_idf")) {
      config.set("idf_weights", idf_weights(weights_group, words.size()));
    }
    config.set("vocabulary", std::move(words));
    return config;
  }

  // Returns the weights of the words. Keras pads them with zeros up to max_tokens.
  Config idf_weights(const std::string& group, size_t words) const {
    const Tensor stored = weights_.read(group + "vars/idf_weights", DType::kFloat64);
    if (stored.rank() != 1 || static_cast<size_t>(stored.size()) < words) {
      throw IoError(weights_.path(), ": ", group, "vars/idf_weights has shape ", stored.shape(),
                    " for ", words, " words");
    }
    std::vector<double> weights = stored.to_vector<double>();
    weights.resize(words);
    return encode(weights);
  }

  int64_t integer(const std::string& entry, const std::string& line) const {
    int64_t out = 0;
    const char* const end = line.data() + line.size();
    const auto [stop, error] = std::from_chars(line.data(), end, out);
    if (error != std::errc() || stop != end) {
      throw IoError(weights_.path(), ": ", entry, " has the word '", line,
                    "', which is not an integer");
    }
    return out;
  }

  const ZipFile& archive_;
  const Hdf5File& weights_;
};

}  // namespace

Config with_vocabularies(const ZipFile& archive, const Hdf5File& weights, const Config& model) {
  return Vocabularies(archive, weights).filled(model, "");
}

namespace {

// Moves vocabularies out of a config.
class VocabularyWriter {
 public:
  VocabularyWriter(const std::set<std::string>& layers, std::map<std::string, std::string>& assets)
      : layers_(layers), assets_(assets) {}

  // Returns the config of an object, whose weights are in `group`, without vocabularies.
  Config emptied(const Config& object, const std::string& group) const {
    const Config* const class_name = find(object, "class_name");
    const Config* const config = find(object, "config");
    if (class_name == nullptr || config == nullptr) return object;
    Config out = object;
    if (is_string(class_name, "StringLookup") || is_string(class_name, "IntegerLookup")) {
      out.set("config", without_vocabulary(*config, group));
    } else if (const Config* layers = find(*config, "layers"); layers && layers->is_list()) {
      Config inner = *config;
      Config::List all;
      std::map<std::string, int> used;
      for (const Config& layer : layers->items()) {
        std::string name = to_snake_case(layer["class_name"].string());
        if (const int k = used[name]++; k > 0) name += "_" + std::to_string(k);
        all.push_back(emptied(layer, absl::StrCat(group, "layers/", name, "/")));
      }
      inner.set("layers", std::move(all));
      out.set("config", std::move(inner));
    }
    return out;
  }

 private:
  Config without_vocabulary(Config config, const std::string& group) const {
    const Config* const name = find(config, "name");
    if (name == nullptr || !name->is_string() || !layers_.contains(name->string())) return config;
    std::vector<std::string> lines;
    for (const Config& word : config["vocabulary"].items()) {
      const std::string line = word.is_string() ? word.string() : std::to_string(word.integer());
      if (line.find_first_of("\r\n") != std::string::npos) {
        throw ValueError("save_model for Keras: '", name->string(),
                         "' has a string id with a line break, which a '.keras' file cannot hold; "
                         "save a '.h5' file");
      }
      lines.push_back(line);
    }
    // Keras before 3.13 reads a line break at the end as one more word.
    std::string text = absl::StrJoin(lines, "\n");
    assets_.emplace(absl::StrCat("assets/", group, "vocabulary.txt"), std::move(text));
    config.set("vocabulary", Config());
    return config;
  }

  const std::set<std::string>& layers_;
  std::map<std::string, std::string>& assets_;
};

}  // namespace

Config without_vocabularies(const Config& model, const std::set<std::string>& layers,
                            std::map<std::string, std::string>& assets) {
  return VocabularyWriter(layers, assets).emptied(model, "");
}

}  // namespace keel
