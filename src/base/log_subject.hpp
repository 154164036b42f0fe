// The subject that a thread's messages begin with, where several subjects are worked on at once: while a LogSubject
// lives, the messages of its thread to any Log begin with it. Used by `cingulum batch`.
#pragma once

#include <string>

namespace cingulum {

class LogSubject {
 public:
  explicit LogSubject(std::string subject);
  ~LogSubject();
  LogSubject(const LogSubject&) = delete;
  LogSubject& operator=(const LogSubject&) = delete;

 private:
  std::string before_;
};

}  // namespace cingulum
