// What a model's HDF5 file is to hold, and how one process of a job writes it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <keel/savedmodel/hdf5/hdf5_file.h>

namespace keel {

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
  std::vector<std::string> groups;  // of what follows
  std::vector<Text> texts;
  std::vector<Dataset> datasets;
  std::vector<List> lists;
};

// In a job of several processes all of them call this: all read the values, rank 0 writes. An
// error, which `caller` is named in, waits until all is read and is thrown in all processes. The
// file appears whole or not at all.
void write_hdf5(const char* caller, const std::string& path, const Hdf5Contents& contents);

// The same into a temporary file beside `path`, which rank 0 receives; null in other processes.
std::unique_ptr<const TemporaryFile> write_temporary_hdf5(const char* caller,
                                                          const std::string& path,
                                                          const Hdf5Contents& contents);

}  // namespace keel
