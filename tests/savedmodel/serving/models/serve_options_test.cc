// Tests savedmodel/serving/serve_options.cc.
#include <keel/savedmodel/serving/serve_options.h>

#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/temporary_folder.h"

namespace keel::serving::serve_options_test {

using testing_support::message_of;

std::string refused(std::vector<std::string> words) {
  words.emplace_back("--model_base_path=/models");
  return message_of<ValueError>([&] { parse_serve_options(words); });
}

// S-001
TEST(ServeOptionsTest, ReadsBothForms) {
  const ParsedServeOptions parsed =
      parse_serve_options({"--model_base_path", "/m", "--rest_api_port=-1", "--max_connections",
                           "7", "--lame_duck_seconds=0.5"});
  EXPECT_EQ(parsed.options.model_base_path, "/m");
  EXPECT_EQ(parsed.options.rest_api_port, -1);
  EXPECT_EQ(parsed.options.max_connections, 7);
  EXPECT_EQ(parsed.options.lame_duck_seconds, 0.5);
  EXPECT_EQ(parsed.options.model_name, "default");
  EXPECT_TRUE(parse_serve_options({"--nope", "--help"}).help);
  EXPECT_NE(refused({"--nope"}).find("--nope"), std::string::npos);
  const ParsedServeOptions twice =
      parse_serve_options({"--model_base_path=/a", "--log_requests", "--xla_gpu=1",
                           "--model_base_path=/b", "--log_requests=false", "--xla_gpu=2"});
  EXPECT_EQ(twice.options.model_base_path, "/b");
  EXPECT_FALSE(twice.options.log_requests);
  EXPECT_EQ(twice.warnings.size(), 1U);
  EXPECT_NE(refused({"--max_connections=0"}).find("--max_connections"), std::string::npos);
  EXPECT_NE(refused({"--idle_timeout_seconds=soon"}).find("soon"), std::string::npos);
  EXPECT_NE(refused({"--rest_api_port=65536"}).find("65535"), std::string::npos);
  EXPECT_NE(refused({"--max_connections"}).find("--max_connections"), std::string::npos);
  EXPECT_NE(refused({"word"}).find("word"), std::string::npos);
  EXPECT_NE(refused({"--port=8500"}).find("gRPC"), std::string::npos);
  EXPECT_NE(refused({"--batching_parameters_file=x"}).find("--enable_batching"), std::string::npos);
}

// S-001
TEST(ServeOptionsTest, HelpHasEachFlagAndItsDefault) {
  const std::string help = serve_help();
  for (const char* text : {"--rest_api_port N", "default 8501", "--drain_timeout_seconds SECONDS",
                           "default 30", "--log_requests", "default false"}) {
    EXPECT_NE(help.find(text), std::string::npos) << text;
  }
}

// Section 1: gRPC is on by default in programs that have it.
TEST(ServeOptionsTest, ReadsTheFlagsOfGrpc) {
  const auto parsed = [](std::vector<std::string> words, bool has_grpc) {
    words.emplace_back("--model_base_path=/m");
    return parse_serve_options(words, has_grpc).options;
  };
  EXPECT_EQ(parsed({}, true).port, 8500);
  EXPECT_EQ(parsed({}, false).port, 0);
  EXPECT_EQ(parsed({"--port=-1"}, true).port, -1);
  const ServeOptions all = parsed(
      {"--port=0", "--grpc_socket_path=/s", "--grpc_max_threads=3",
       "--enable_grpc_healthcheck_service=false", "--enable_serialization_as_tensor_content"},
      true);
  EXPECT_EQ(all.port, 0);
  EXPECT_EQ(all.grpc_socket_path, "/s");
  EXPECT_EQ(all.grpc_max_threads, 3);
  EXPECT_FALSE(all.enable_grpc_healthcheck_service);
  EXPECT_TRUE(all.enable_serialization_as_tensor_content);
  EXPECT_NE(refused({"--grpc_socket_path=/s"}).find("gRPC"), std::string::npos);
  EXPECT_NE(refused({"--grpc_max_threads=0"}).find("--grpc_max_threads"), std::string::npos);
  EXPECT_NE(serve_help(true).find("default 8500"), std::string::npos);
  EXPECT_EQ(serve_help(false).find("default 8500"), std::string::npos);
}

// S-003
TEST(ServeOptionsTest, AcceptsFlagsOfTensorFlowServing) {
  const ParsedServeOptions parsed =
      parse_serve_options({"--tensorflow_intra_op_parallelism", "4", "--enable_profiler",
                           "--model_base_path=/m", "--saved_model_tags=serve"});
  EXPECT_EQ(parsed.warnings.size(), 3U);
  EXPECT_NE(refused({"--ssl_config_file=x"}).find("ssl_config_file"), std::string::npos);
  EXPECT_NE(refused({"--use_alts_credentials"}).find("use_alts"), std::string::npos);
}

// S-004
TEST(ServeOptionsTest, ReadsBooleans) {
  const auto value = [](const std::string& word) {
    return parse_serve_options({word, "--model_base_path=/m"}).options.log_requests;
  };
  EXPECT_TRUE(value("--log_requests"));
  EXPECT_TRUE(value("--log_requests=true"));
  EXPECT_TRUE(value("--log_requests=1"));
  EXPECT_FALSE(value("--log_requests=false"));
  EXPECT_FALSE(value("--log_requests=0"));
  EXPECT_NE(refused({"--log_requests=yes"}).find("--log_requests"), std::string::npos);
}

}  // namespace keel::serving::serve_options_test
