BEGIN TRANSACTION;
CREATE TABLE attempts (
	request_id VARCHAR(200) NOT NULL, 
	attempt INTEGER NOT NULL, 
	"key" VARCHAR(40) NOT NULL, 
	executor VARCHAR(100) NOT NULL, 
	job TEXT NOT NULL, 
	handle TEXT, 
	state VARCHAR(20) NOT NULL, 
	reason TEXT NOT NULL, 
	exit_code INTEGER, 
	cancel_asked_at FLOAT, 
	tries INTEGER NOT NULL, 
	next_look FLOAT NOT NULL, 
	owner TEXT, 
	owned_until FLOAT NOT NULL, 
	run INTEGER NOT NULL, 
	machine TEXT, 
	unheard_since FLOAT, 
	created_at FLOAT NOT NULL, 
	started_at FLOAT, 
	ended_at FLOAT, 
	PRIMARY KEY (request_id, attempt), 
	UNIQUE ("key")
);
INSERT INTO "attempts" VALUES('old-1',1,'tbzvfancxivf6qo36no3m5tai7','local','{"attempt":1,"env":{},"image":"cwolff/my_keras_model","key":"tbzvfancxivf6qo36no3m5tai7","max_run_time_s":null,"pool":"proj-1/b-gpu","profile":null,"request_id":"old-1","resources":{},"retries":0,"scopes":[],"sku":"ND6","worker":"b-gpu"}','job-old-1','succeeded','',NULL,NULL,0,1800000060.0,NULL,0.0,0,'vm-1',NULL,1800000000.0,1800000000.0,1800000060.0);
INSERT INTO "attempts" VALUES('old-2',1,'trsanm7cq5p66wsauclztxx62z','local','{"attempt":1,"env":{},"image":"cwolff/my_keras_model","key":"trsanm7cq5p66wsauclztxx62z","max_run_time_s":null,"pool":"proj-1/b-gpu","profile":null,"request_id":"old-2","resources":{},"retries":0,"scopes":[],"sku":"ND6","worker":"b-gpu"}','job-old-2','running','',NULL,NULL,0,1800000061.0,'me fb9f63b2f6bf17fd',1800000061.0,0,'vm-1',NULL,1800000001.0,1800000001.0,NULL);
CREATE TABLE dead_letters (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	queue VARCHAR(50) NOT NULL, 
	body BLOB NOT NULL, 
	size BIGINT NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	code VARCHAR(50) NOT NULL, 
	reason TEXT NOT NULL, 
	request_id VARCHAR(200), 
	first_at FLOAT NOT NULL, 
	last_at FLOAT NOT NULL, 
	CONSTRAINT dead_letters_content UNIQUE (queue, digest, code)
);
INSERT INTO "dead_letters" VALUES(1,'start',X'7B22726571756573744964223A20226F6C642D33222C2022747261696E696E67566D536B75223A20224E4437222C2022747261696E696E67496D616765223A202263776F6C66662F6D795F6B657261735F6D6F64656C222C2022747261696E696E67496D61676573436F6E7461696E6572223A2022696D616765732D332D31352D32303138227D',135,'0d21921f56bf6704acdcb407c1fb50f08e67d7867b31547f4d0cadb40dde6e77','unknown-sku','this SKU is not known','old-3',1800000002.0,1800000002.0);
CREATE TABLE machines (
	id TEXT NOT NULL, 
	pool TEXT NOT NULL, 
	ephemeral BOOLEAN NOT NULL, 
	created_at FLOAT, 
	stop_asked_at FLOAT, 
	gone_at FLOAT, 
	PRIMARY KEY (id)
);
CREATE TABLE messages (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	queue VARCHAR(50) NOT NULL, 
	body BLOB NOT NULL, 
	dedup TEXT, 
	visible_at FLOAT NOT NULL, 
	attempts INTEGER NOT NULL, 
	lease VARCHAR(40), 
	CONSTRAINT messages_dedup UNIQUE (queue, dedup)
);
CREATE TABLE outbox (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	message_id TEXT NOT NULL, 
	body TEXT NOT NULL, 
	created_at FLOAT NOT NULL, 
	next_try FLOAT NOT NULL, 
	tries INTEGER NOT NULL, 
	lease VARCHAR(40), 
	sent_at FLOAT, 
	UNIQUE (message_id)
);
INSERT INTO "outbox" VALUES(1,'old-1/1','{"trainingVmId": "vm-1", "requestId": "old-1", "outcome": "succeeded", "runId": 0}',1800000060.0,1800000060.0,0,NULL,NULL);
INSERT INTO "outbox" VALUES(2,'old-3/1','{"trainingVmId": null, "requestId": "old-3", "outcome": "rejected", "reason": "this SKU is not known", "runId": null}',1800000002.0,1800000002.0,0,NULL,NULL);
CREATE TABLE progress (
	request_id VARCHAR(200) NOT NULL, 
	attempt INTEGER NOT NULL, 
	run INTEGER NOT NULL, 
	name VARCHAR(200) NOT NULL, 
	seq INTEGER NOT NULL, 
	at FLOAT NOT NULL, 
	data TEXT NOT NULL, 
	PRIMARY KEY (request_id, attempt, run, name, seq)
);
INSERT INTO "progress" VALUES('old-1',1,0,'trainingSuceededWithImages',0,1800000060.0,'{}');
INSERT INTO "progress" VALUES('old-3',1,0,'trainingRejected',0,1800000002.0,'{"code": "unknown-sku", "reason": "this SKU is not known"}');
CREATE TABLE requests (
	request_id VARCHAR(200) NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	body BLOB NOT NULL, 
	sku TEXT, 
	image TEXT, 
	attempt INTEGER NOT NULL, 
	state VARCHAR(20) NOT NULL, 
	reason TEXT NOT NULL, 
	received_at FLOAT NOT NULL, 
	ended_at FLOAT, 
	PRIMARY KEY (request_id)
);
INSERT INTO "requests" VALUES('old-1','de15d137ce9272781374b02432004d7f05252781ee11cf7d0b7b83349424b970',X'7B22726571756573744964223A20226F6C642D31222C2022747261696E696E67566D536B75223A20224E4436222C2022747261696E696E67496D616765223A202263776F6C66662F6D795F6B657261735F6D6F64656C222C2022747261696E696E67496D61676573436F6E7461696E6572223A2022696D616765732D332D31352D32303138227D','ND6','cwolff/my_keras_model',1,'succeeded','',1800000000.0,1800000060.0);
INSERT INTO "requests" VALUES('old-2','1fe461625847a77323947b0f36175b611c65a46c6e443165a073f0e7c747ab74',X'7B22726571756573744964223A20226F6C642D32222C2022747261696E696E67566D536B75223A20224E4436222C2022747261696E696E67496D616765223A202263776F6C66662F6D795F6B657261735F6D6F64656C222C2022747261696E696E67496D61676573436F6E7461696E6572223A2022696D616765732D332D31352D32303138227D','ND6','cwolff/my_keras_model',1,'running','',1800000001.0,NULL);
INSERT INTO "requests" VALUES('old-3','0d21921f56bf6704acdcb407c1fb50f08e67d7867b31547f4d0cadb40dde6e77',X'7B22726571756573744964223A20226F6C642D33222C2022747261696E696E67566D536B75223A20224E4437222C2022747261696E696E67496D616765223A202263776F6C66662F6D795F6B657261735F6D6F64656C222C2022747261696E696E67496D61676573436F6E7461696E6572223A2022696D616765732D332D31352D32303138227D',NULL,NULL,1,'rejected','this SKU is not known',1800000002.0,1800000002.0);
CREATE TABLE schema_version (
	version INTEGER NOT NULL
);
INSERT INTO "schema_version" VALUES(1);
CREATE INDEX messages_next ON messages (queue, visible_at, id);
CREATE INDEX requests_newest ON requests (received_at, request_id);
CREATE INDEX requests_alive ON requests (received_at) WHERE ended_at IS NULL;
CREATE INDEX attempts_due ON attempts (next_look) WHERE ended_at IS NULL;
CREATE INDEX machines_there ON machines (id) WHERE gone_at IS NULL;
CREATE INDEX outbox_unsent ON outbox (next_try, id) WHERE sent_at IS NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('outbox',2);
INSERT INTO "sqlite_sequence" VALUES('dead_letters',1);
COMMIT;
