#include <string>
#include <vector>

#include "cli/process.hpp"

int main(int count, char** words) {
  return cingulum::run_process(std::vector<std::string>(words + (count > 0 ? 1 : 0), words + count));
}
