// The contents of a model's HDF5 file, and their collective write in a job of several processes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <keel/savedmodel/hdf5/hdf5_file.h>

namespace keel {

// Lists the groups, attributes and datasets of a file.
struct Hdf5Contents {
  struct Text {
    std::string object, attribute, text;
    Hdf5Writer::Charset charset = Hdf5Writer::Charset::kUtf8;
  };
  struct List {
    std::string object, attribute;
    std::vector<std::string> values;
  };
  struct Dataset {
    std::string path;
    std::function<Tensor()> get;  // collective over the processes of a job
  };
  std::vector<std::string> groups;  // parents of the objects below
  std::vector<Text> texts;
  std::vector<Dataset> datasets;
  std::vector<List> lists;
};

// Writes the file. Collective: all processes of the job call it and read the values, and rank 0
// writes. An error, which names `caller`, is thrown in all processes after all values have been
// read. The file appears as a whole or not at all.
void write_hdf5(const char* caller, const std::string& path, const Hdf5Contents& contents);

// Does the same into a temporary file in the folder of `path`. Rank 0 receives the file; other
// processes receive null.
std::unique_ptr<const TemporaryFile> write_temporary_hdf5(const char* caller,
                                                          const std::string& path,
                                                          const Hdf5Contents& contents);

}  // namespace keel
