"""The study from which the defaults of `cingulum track` come. tools/track-study is its command line."""
