#include <keel/framework/config/dtype_policy.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace keel::dtype_policy_test {

using testing::HasSubstr;
using testing_support::message_of;

// Restores the global policy after each test.
class DTypePolicyTest : public testing::Test {
 protected:
  ~DTypePolicyTest() override { set_dtype_policy(before_); }

 private:
  const DTypePolicy before_ = dtype_policy();
};

TEST_F(DTypePolicyTest, NamesMatchKeras) {
  const DTypePolicy mixed = "mixed_bfloat16";
  EXPECT_EQ(mixed.name(), "mixed_bfloat16");
  EXPECT_EQ(mixed.variable_dtype(), DType::kFloat32);
  EXPECT_TRUE(mixed.bfloat16_products());
  const DTypePolicy plain = "float64";
  EXPECT_EQ(plain.name(), "float64");
  EXPECT_EQ(plain, DType::kFloat64);
  EXPECT_FALSE(plain.bfloat16_products());
  const DTypePolicy half = "mixed_float16";
  EXPECT_EQ(half.name(), "mixed_float16");
  EXPECT_TRUE(half.float16_products());
  EXPECT_FALSE(half.bfloat16_products());
  EXPECT_EQ(half.variable_dtype(), DType::kFloat32);
  DTypePolicy again = DType::kFloat32;
  decode(encode(half), again);
  EXPECT_EQ(again, half);
  EXPECT_NE(mixed, DType::kFloat32);
}

TEST_F(DTypePolicyTest, UnsupportedPoliciesAreErrors) {
  for (const char* name : {"float16", "bfloat16"}) {
    EXPECT_THAT(message_of<NotImplementedError>([&] { (void)DTypePolicy(name); }), HasSubstr(name));
  }
  EXPECT_THROW(DTypePolicy("mixed"), ValueError);
}

TEST_F(DTypePolicyTest, Int4WeightsHaveABlockSize) {
  const DTypePolicy policy = "int4/32_from_float32";
  EXPECT_TRUE(policy.int4_weights());
  EXPECT_FALSE(policy.int8_weights());
  EXPECT_EQ(policy.int4_block_size(), 32);
  EXPECT_EQ(to_json(encode(policy)),
            R"({"module": "keras.dtype_policies", "class_name": "Int4DTypePolicy", )"
            R"("config": {"mode": "int4/32", "source_name": "float32"}, "registered_name": null})");
  DTypePolicy read = DType::kFloat64;
  decode(encode(policy), read);
  EXPECT_EQ(read, policy);
  EXPECT_EQ(DTypePolicy("int4/None_from_mixed_bfloat16").name(), "int4/-1_from_mixed_bfloat16");
  for (const char* name : {"int4/0_from_float32", "int4/-2_from_float32", "int4/x_from_float32"}) {
    EXPECT_THROW((void)DTypePolicy(name), ValueError) << name;
  }
  EXPECT_THROW((void)DTypePolicy("float8_from_float32"), NotImplementedError);
  EXPECT_THROW((void)policy.with_int8_weights(), NotImplementedError);
  EXPECT_THROW(set_dtype_policy(policy), ValueError);
}

TEST_F(DTypePolicyTest, Int8WeightsArePrefixedToAnotherPolicy) {
  for (const char* name : {"int8_from_float32", "int8_from_mixed_bfloat16"}) {
    const DTypePolicy policy = name;
    EXPECT_EQ(policy.name(), name);
    EXPECT_TRUE(policy.int8_weights());
    EXPECT_EQ(policy.variable_dtype(), DType::kFloat32);
    EXPECT_NE(policy, DType::kFloat32);
    DTypePolicy read = DType::kFloat64;
    decode(encode(policy), read);
    EXPECT_EQ(read, policy);
    decode(Config(name), read);
    EXPECT_EQ(read, policy);
    EXPECT_THROW((void)policy.with_int8_weights(), NotImplementedError);
    EXPECT_THROW(set_dtype_policy(policy), ValueError);
  }
  EXPECT_TRUE(DTypePolicy("int8_from_mixed_bfloat16").bfloat16_products());
  EXPECT_EQ(DTypePolicy("mixed_bfloat16").with_int8_weights().name(), "int8_from_mixed_bfloat16");
  EXPECT_EQ(dtype_policy(), DType::kFloat32);
  for (const char* name : {"int4_from_float32", "float8_from_float32", "int8_from_float64",
                           "int8_from_int8_from_float32", "int8_from_float16"}) {
    EXPECT_THROW((void)DTypePolicy(name), NotImplementedError) << name;
  }
  EXPECT_THROW((void)DTypePolicy("int8_from_"), ValueError);
}

TEST_F(DTypePolicyTest, ConfigsOfInt8WeightsMatchKeras) {
  EXPECT_EQ(to_json(encode(DTypePolicy("int8_from_float32"))),
            R"({"module": "keras.dtype_policies", "class_name": "QuantizedDTypePolicy", )"
            R"("config": {"mode": "int8", "source_name": "float32"}, "registered_name": null})");
  // Without a source name, the global policy applies. Before Keras 3.4 the config was only the
  // name.
  for (const char* config : {R"({"mode": "int8", "source_name": null})", R"({"mode": "int8"})",
                             R"({"name": "int8_from_float32"})"}) {
    DTypePolicy read = DType::kFloat64;
    decode(Config::dict({{"class_name", "QuantizedDTypePolicy"}, {"config", parse_json(config)}}),
           read);
    EXPECT_EQ(read.name(), "int8_from_float32") << config;
  }
}

TEST_F(DTypePolicyTest, TheGlobalPolicyIsTheDefault) {
  EXPECT_EQ(dtype_policy(), DType::kFloat32);
  set_dtype_policy("mixed_bfloat16");
  EXPECT_EQ(dtype_policy().name(), "mixed_bfloat16");
  EXPECT_EQ(DTypePolicy().name(), "mixed_bfloat16");
  EXPECT_EQ(DTypePolicy(DType::kFloat32).name(), "float32");
  EXPECT_THROW(set_dtype_policy(DType::kInt64), ValueError);
  EXPECT_EQ(dtype_policy().name(), "mixed_bfloat16");
}

TEST_F(DTypePolicyTest, ConfigsMatchKeras) {
  const Config mixed = encode(DTypePolicy("mixed_bfloat16"));
  EXPECT_EQ(to_json(mixed), R"({"module": "keras", "class_name": "DTypePolicy", )"
                            R"("config": {"name": "mixed_bfloat16"}, "registered_name": null})");
  EXPECT_EQ(encode(DTypePolicy(DType::kFloat64)), Config("float64"));
  for (const Config& config :
       {mixed, Config("mixed_bfloat16"),
        parse_json(R"({"class_name": "Policy", "config": {"name": "mixed_bfloat16"}})")}) {
    DTypePolicy read = DType::kFloat64;
    decode(config, read);
    EXPECT_EQ(read.name(), "mixed_bfloat16");
  }
  DTypePolicy read;
  EXPECT_THROW(decode(parse_json(R"({"config": {"name": "float16"}})"), read), NotImplementedError);
  set_dtype_policy("mixed_bfloat16");
  decode(Config(), read);
  EXPECT_EQ(read.name(), "mixed_bfloat16");
}

}  // namespace keel::dtype_policy_test
