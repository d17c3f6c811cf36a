// Prints the fingerprint of every line of standard input as yanyiwu's simhash makes it, with so many
// words as the fifth argument says, or as many as the library chooses.
//
//   git clone https://github.com/yanyiwu/simhash && git -C simhash checkout 30c243b
//   git -C simhash submodule update --init --recursive
//   g++ -O1 -std=c++17 -I simhash/include -I simhash/submodules/cppjieba/include \
//       -I simhash/submodules/cppjieba/deps/limonp/include yanyiwu.cpp -o yanyiwu
//   ./yanyiwu DICTIONARY MODEL IDF STOPWORDS [TOP] < texts
//
// cppjieba reads a user dictionary whether one is named or not: where the header was found,
// cppjieba/dict/user.dict.utf8 has to be an empty file.
#include <cstdio>
#include <iostream>

#include "simhash/Simhasher.hpp"

int main(int count, char** arguments) {
    simhash::Simhasher simhasher(arguments[1], arguments[2], arguments[3], arguments[4]);
    std::string text;
    while (std::getline(std::cin, text)) {
        size_t top = count > 5 ? std::stoul(arguments[5]) : simhash::Simhasher::getTopN(text);
        uint64_t fingerprint = 0;
        simhasher.make(text, top, fingerprint);
        std::printf("%016llx\n", static_cast<unsigned long long>(fingerprint));
    }
}
