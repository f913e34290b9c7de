/* SPDX-License-Identifier: Apache-2.0
 *
 * clgraph from C++17: the C interface with objects that free themselves, views in place of pointers
 * with lengths, and errors that are thrown, or returned.
 *
 *     auto context = clgraph::context::create();
 *     clgraph::model model("digits.onnx");
 *     clgraph::session session(context, model);
 *     std::array<float, 64> image{};
 *     session.set_input("image", {1, 1, 8, 8}, image);
 *     session.run();
 *     std::vector<float> probabilities = session.get_output("probabilities").to_vector<float>();
 *
 * Headers alone: link the same libclgraph. The rules of clgraph.h apply: comments here say what is
 * different, and a function X is clg_<class>_X there. docs/cpp.md has the rest. Enumerations,
 * statuses and structs that calls fill in are those of the C interface.
 *
 *   - X() throws clgraph::error, try_X() returns clgraph::result (cpp/error.hpp).
 *   - Handles own, move and free; get() is the object for functions of the C interface. A value is
 *     a reference, and copies.
 *   - Names, paths, dimensions and elements given as arguments are not copied, unless a comment
 *     says so, or a name is a std::string_view.
 */
#ifndef CLGRAPH_CLGRAPH_HPP
#define CLGRAPH_CLGRAPH_HPP

#include <clgraph/cpp/builder.hpp>   /* graphs without ONNX files */
#include <clgraph/cpp/context.hpp>   /* devices, limits, cancel tokens, log */
#include <clgraph/cpp/dtype.hpp>     /* types of elements */
#include <clgraph/cpp/error.hpp>     /* error, result */
#include <clgraph/cpp/files.hpp>     /* .npy, .npz, the cache */
#include <clgraph/cpp/generate.hpp>  /* language models */
#include <clgraph/cpp/image.hpp>     /* images as tensors */
#include <clgraph/cpp/model.hpp>     /* ONNX files, gradients */
#include <clgraph/cpp/session.hpp>   /* runs */
#include <clgraph/cpp/stream.hpp>    /* more rows than memory holds */
#include <clgraph/cpp/tokenizer.hpp> /* text and the ids of its tokens */
#include <clgraph/cpp/train.hpp>     /* training */
#include <clgraph/cpp/value.hpp>     /* tensors */
#include <clgraph/cpp/view.hpp>      /* view, names of arguments */

#endif
