;; Answers with a reason of all of its memory.
;; kind: health
;; budget: {"replyBytes": 1000}
;; expect: bad-reply
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (i32.store (i32.const 520) (i32.const 0))
      (i32.store (i32.const 524) (i32.const 65536))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
