/* SPDX-License-Identifier: Apache-2.0
 *
 * predict.c in C++17: a minimal program that uses an installed clgraph.
 *
 *     predict_cpp MODEL    runs the model once on zeros, and prints the size of output 0
 */
#include <clgraph/clgraph.hpp>

#include <cstdio>

int main(int argc, char **argv)
{
    if (argc != 2) {
        std::fprintf(stderr, "usage: predict_cpp MODEL\n");
        return 2;
    }
    try {
        const auto context = clgraph::context::create();
        const clgraph::model model(argv[1]);
        clgraph::session session(context, model);
        for (const clg_port &port : model.inputs()) {
            const clgraph::dims_view declared = clgraph::dims_of(port);
            std::vector<std::int64_t> dims(declared.begin(), declared.end());
            for (std::int64_t &d : dims)
                if (d < 0) d = 1;
            session.set_input(port, clgraph::value::create(port.dtype, dims));
        }
        session.run();
        const clg_port &out = model.outputs()[0];
        std::printf("clgraph %s on %s: %s has %lld elements\n", clg_version(),
                    context.device().name, out.name,
                    static_cast<long long>(session.get_output(out).n_elements()));
        return 0;
    } catch (const std::exception &e) {
        std::fprintf(stderr, "predict_cpp: %s\n", e.what());
        return 1;
    }
}
